"""The state folder: it belongs to one autoscaler at a time."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class StateDirTakenError(Exception):
    """Another autoscaler uses the state folder."""


@contextmanager
def only_one(state_dir: Path) -> Iterator[None]:
    """Claim the folder for this process until it ends, however it ends. Raises StateDirTakenError or OSError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(state_dir, os.O_RDONLY)  # the folder itself: no file is left behind
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise StateDirTakenError(
                f"another autoscaler runs on {state_dir}; stop it, or set TAILPACK_STATE_DIR"
            ) from taken
        yield
    finally:
        os.close(handle)
