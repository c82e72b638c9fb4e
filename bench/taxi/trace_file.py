"""A table of events per second becomes the text that `tailpack simulate --trace` reads."""

import os
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from report.spark import ReportError

BATCH: int = 10_000
"""Seconds turned into text at a time."""


def check_place(file: Path) -> None:
    """Raise ReportError where no file can be written, before any work is done for it."""
    if file.is_dir():
        raise ReportError(f"--out {file}: is a folder; name a file, such as trace.csv")
    if not file.parent.is_dir():
        raise ReportError(f"--out {file}: the folder {file.parent} is not there")
    if not os.access(file.parent, os.W_OK):
        raise ReportError(f"--out {file}: the folder {file.parent} cannot be written to")


def write_trace(file: Path, counts: npt.NDArray[np.int64]) -> None:
    """Write counts, shape (seconds, partitions), to `file`: whole or not at all. Raises ReportError."""
    names = ["events"] if counts.shape[1] == 1 else [f"p{partition}" for partition in range(counts.shape[1])]
    temporary: str | None = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=file.parent, prefix=f".{file.name}-", encoding="ascii", delete=False
        ) as text:
            temporary = text.name
            text.write(",".join(["second", *names]) + "\n")
            for begin in range(0, len(counts), BATCH):
                rows = enumerate(counts[begin : begin + BATCH].tolist(), begin)
                text.writelines(f"{second},{','.join(map(str, row))}\n" for second, row in rows)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except BaseException as failed:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(failed, OSError):
            raise ReportError(f"--out {file}: cannot be written ({failed.strerror})") from failed
        raise
