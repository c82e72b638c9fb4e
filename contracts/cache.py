"""Where what can be made or fetched again is kept on this machine."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return ${XDG_CACHE_HOME:-~/.cache}/tailpack."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailpack"
