"""What has been simulated already, as JSON lines: an interrupted comparison goes on where it stopped."""

from pathlib import Path
from typing import Final

import msgspec

from bench.simulation.result import SimulationResult

FILE: Final = "results.jsonl"


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """One finished job."""

    key: str
    result: SimulationResult


class Store:
    """The results in a folder, by key. Each is on disk as soon as `add` returns."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / FILE
        self._found: dict[str, SimulationResult] = {}
        self._read()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, key: str) -> SimulationResult | None:
        """Return the result kept under `key`."""
        return self._found.get(key)

    def add(self, key: str, result: SimulationResult) -> None:
        """Keep a result."""
        self._found[key] = result
        with self.path.open("ab") as file:
            file.write(msgspec.json.encode(Line(key=key, result=result)) + b"\n")

    def _read(self) -> None:
        """Take in what is there; a line that was cut off, or that an older release wrote, is as if never measured."""
        text = self.path.read_bytes() if self.path.exists() else b""
        for one in text.splitlines():
            try:
                line = msgspec.json.decode(one, type=Line)
            except msgspec.DecodeError:
                continue
            self._found[line.key] = line.result
        if text and not text.endswith(b"\n"):
            with self.path.open("ab") as file:
                file.write(b"\n")  # so that the next line does not continue the one cut off
