"""A disk that is soon full: a file system in memory, of a few pages."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE: int = 4096
"""What a file takes there at least, and always a multiple of it."""


@contextmanager
def small_disk(place: Path, *, bytes_: int) -> Iterator[Path]:
    """Mount it at the new folder `place`; the test is skipped where that is not allowed."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={bytes_}", "tailpack-test", str(place)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no disk can be mounted here: {mounted.stderr.strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)
