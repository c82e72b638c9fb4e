"""A simulated run on disk: its figures, every event in the columns of a live run, and the journal of every decision."""

import gzip
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.run import Run
from autoscaler.simulator.timeline import timeline
from bench.simulation.result import SimulationResult

BLOCK: Final = 50_000
"""Events that are turned into text at once."""


def write_run(folder: Path, run: Run, result: SimulationResult) -> list[Path]:
    """Write result.json, journal.jsonl and the events; return the files. Times are µs since the start of the run.

    Events become events.parquet where pyarrow is installed, and events.jsonl.gz elsewhere.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures, journal = folder / "result.json", folder / "journal.jsonl"
    figures.write_bytes(msgspec.json.format(msgspec.json.encode(result)) + b"\n")
    with journal.open("wb") as lines:
        for entry in run.entries():
            lines.write(msgspec.json.encode(entry) + b"\n")
    write = _parquet if find_spec("pyarrow") else _json_lines
    return [figures, journal, write(folder, timeline(run))]


def _json_lines(folder: Path, columns: dict[str, NDArray[Any]]) -> Path:
    path = folder / "events.jsonl.gz"
    encoder = msgspec.json.Encoder()
    with path.open("wb") as raw, gzip.GzipFile("", "wb", compresslevel=1, fileobj=raw, mtime=0) as lines:
        for block in _blocks(columns):
            names, values = list(block), zip(*block.values(), strict=True)
            lines.write(encoder.encode_lines([dict(zip(names, row, strict=True)) for row in values]))
    return path


def _blocks(columns: dict[str, NDArray[Any]]) -> Iterator[dict[str, list[Any]]]:
    """Yield some events at a time, column by column, as plain values; None where a column is masked."""
    count = max((len(column) for column in columns.values()), default=0)
    for begin in range(0, count, BLOCK):
        yield {name: column[begin : begin + BLOCK].tolist() for name, column in columns.items()}


def _parquet(folder: Path, columns: dict[str, NDArray[Any]]) -> Path:
    import pyarrow  # noqa: PLC0415  only the bench extra brings it
    from pyarrow import parquet  # noqa: PLC0415

    path = folder / "events.parquet"
    arrays = {
        name: pyarrow.array(np.ma.getdata(column), mask=np.ma.getmaskarray(column)) for name, column in columns.items()
    }
    parquet.write_table(pyarrow.table(arrays), path)
    return path
