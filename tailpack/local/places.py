"""Where runs keep their files."""

import time
from pathlib import Path

from report.run_info import RUN_FILE
from tailpack.errors import TailpackError


def free_for_run(folder: Path) -> Path:
    """Return `folder`, which need not be there. Raises TailpackError when it holds a run already."""
    if (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} holds a run already; choose another name, or move it away")
    return folder


def newest_run(out: Path = Path("out")) -> Path | None:
    """Return the folder of the run in `out` that was made last; None where there is none."""
    return max(
        (one.parent for one in out.glob(f"*/{RUN_FILE}")),
        key=lambda run: (run / RUN_FILE).stat().st_mtime,
        default=None,
    )


def new_folder(out: Path, scenario: str) -> Path:
    """Make and return a folder for one run, named after the scenario and the time."""
    for attempt in range(100):
        name = f"{scenario}-{time.strftime('%Y%m%d-%H%M%S')}" + (f"-{attempt}" if attempt else "")
        try:
            (out / name).mkdir(parents=True)
        except FileExistsError:
            continue
        return out / name
    raise TailpackError(f"{out} holds a hundred runs of this very second")
