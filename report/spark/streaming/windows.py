"""What is known of one window of intended time, and the files that hold it. No PySpark: anybody may read them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

SUFFIX: Final = ".jsonl"


class SlaWindow(msgspec.Struct, frozen=True, kw_only=True):
    """Events intended in [start_us, start_us + length_s): integers, so that sums over windows stay exact."""

    start_us: int
    """Epoch µs; a multiple of the length."""
    length_s: int
    events: int
    """Distinct events seen on any topic."""
    done: int
    """Of these, completed when the window was closed."""
    in_sla: int
    """Of these, completed within the latency target."""
    slowest_us: int | None
    """Largest latency of those completed; None when none was."""

    @property
    def share(self) -> float:
        """In-SLA share; a window holds at least one event."""
        return self.in_sla / self.events


def save_windows(folder: Path, batch: int, windows: Sequence[SlaWindow]) -> None:
    """Write what micro-batch number `batch` closed, one window a line; the same batch again replaces its file.

    A reader never sees half of it. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"batch-{batch:08d}{SUFFIX}"
    temporary = place.with_suffix(".tmp")
    temporary.write_bytes(b"".join(msgspec.json.encode(window) + b"\n" for window in windows))
    temporary.replace(place)


def load_windows(folder: Path) -> list[SlaWindow]:
    """Return every window closed so far, by time. Raises msgspec.DecodeError when a file is not of this kind."""
    lines = [line for place in folder.glob(f"*{SUFFIX}") for line in place.read_bytes().splitlines()]
    return sorted((msgspec.json.decode(line, type=SlaWindow) for line in lines), key=lambda window: window.start_us)
