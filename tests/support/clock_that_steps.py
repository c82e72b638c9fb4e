"""A fake wall clock for processes under test: tests can set it, while monotonic clocks continue.

librdkafka uses C11's timed waits, which are not faked and end by the machine's clock. While the fake clock is ahead,
they take longer. While it is behind, they end at once. So tests set the clock ahead, and then back again.
"""

from pathlib import Path

import pytest

LIBRARY = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
needs_libfaketime = pytest.mark.skipif(not LIBRARY.exists(), reason="libfaketime is not installed")


class SteppedClock:
    """The wall clock of processes with the environment `environ`. It is the machine's clock plus an offset."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "faketime"
        self.set(0)
        self.environ = {
            "LD_PRELOAD": str(LIBRARY),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }

    def set(self, ahead_s: int) -> None:
        """Set the clock ahead of the machine's clock by these seconds."""
        written = self._file.with_suffix(".tmp")
        written.write_text(f"{ahead_s:+d}\n")
        written.replace(self._file)
