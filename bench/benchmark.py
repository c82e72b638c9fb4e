"""One runner for all benchmarks: it measures case after case, keeps every finished row, and goes on where it ended.

A benchmark is a dataclass in a file of its own. Its fields are the options of its command, `cases` names what is
measured, `measure` sets up, measures one case and tears down. The table in bench/benchmarks makes it a command.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bench import BenchError
from contracts.children import Child
from contracts.connection import Connection
from contracts.validation import as_environment
from contracts.waiting import WaitTimeoutError

Row = dict[str, Any]
"""Figures of one case. `problem` is not empty, or `valid` is false: the row does not count."""


@dataclass(frozen=True)
class Option:
    """The part of an option that the type and the default of its field do not say."""

    help: str
    least: float | None = None
    most: float | None = None
    positional: bool = False
    time: bool = False
    """Whether it is a length of time: 500ms, 3s, 2m; a bare number is in seconds."""


@dataclass(frozen=True)
class Tools:
    """The means that a benchmark gets from the command line."""

    kafka: Callable[..., AbstractContextManager[Connection]]
    """Runs a broker with all topics: (purpose, payment partitions, pipeline partitions)."""
    announce: Callable[..., None]
    """Shows progress: `said=`, `completed=`, `total=`."""


@dataclass(kw_only=True)
class Benchmark:
    """One benchmark with its options."""

    quick: Annotated[bool, Option("Measure less, within 50 s.")] = False

    def cases(self) -> Sequence[str]:
        """Return the names of what is measured, in order."""
        return ("",)

    @abstractmethod
    def measure(self, case: str, tools: Tools) -> Row:
        """Return the figures of one case, and leave no process behind. Raises BenchError, WaitTimeoutError."""


@dataclass(frozen=True)
class Outcome:
    """The rows of a benchmark and its figures."""

    rows: list[Row]
    interrupted: bool
    """By Ctrl-C; the finished rows are there."""

    @property
    def figures(self) -> Row:
        """The first row, whose figures stand for the whole."""
        return self.rows[0] if self.rows else {}

    @property
    def valid(self) -> bool:
        """Whether every row counts."""
        return all(map(counts, self.rows))


def counts(row: Row) -> bool:
    """Return whether a row counts."""
    return not row.get("problem") and row.get("valid", True)


def run(
    benchmark: Benchmark, tools: Tools, *, repeat: int = 1, into: Path | None = None, origin: Row | None = None
) -> Outcome:
    """Measure every case `repeat` times, and return what is finished when all is done, or at an interruption.

    into: folder of a file to which each row is appended with its origin. A valid row that the file has for the same
    case and options is not measured again.
    """
    rows, interrupted = list[Row](), False
    file = into / f"{type(benchmark).__name__.lower()}.jsonl" if into else None
    known = _kept(file)
    asked = [
        {"options": msgspec.to_builtins(asdict(benchmark)), "case": case, "number": number}
        for number in range(repeat)
        for case in benchmark.cases()
    ]
    rows += [found for one in asked if (found := known.get(_key(one)))]
    still_open = [one for one in asked if _key(one) not in known]
    try:
        for number, one in enumerate(still_open):
            if len(still_open) > 1:
                tools.announce(said=one["case"], completed=number, total=len(still_open))
            rows.append(row := benchmark.measure(one["case"], tools))
            if row.get("interrupted"):
                raise KeyboardInterrupt
            if file:
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("ab") as out:
                    out.write(msgspec.json.encode(one | {"origin": origin, "row": row}) + b"\n")
    except KeyboardInterrupt:
        interrupted = True
    except WaitTimeoutError as wrong:
        raise BenchError(str(wrong)) from wrong
    return Outcome(rows, interrupted)


def environ_of(connection: Connection | None = None, **settings: object) -> dict[str, str]:
    """Return the environment of a child with these settings, by their names in small letters, and none of ours."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    told = {f"TAILPACK_{name.upper()}": str(value) for name, value in settings.items()}
    return plain | (as_environment(connection) if connection else {}) | told


def check(children: Iterable[Child]) -> bool:
    """Return True. Raises BenchError if one of the processes has ended."""
    for one in children:
        if one.exit_status is not None:
            raise BenchError(f"{one.name} ended: {one.ending()}; see {one.log}")
    return True


def _kept(file: Path | None) -> dict[str, Row]:
    lines = file.read_bytes().splitlines() if file and file.exists() else []
    try:
        entries = [msgspec.json.decode(line) for line in lines]
        return {_key(one): one["row"] for one in entries if counts(one["row"])}
    except (msgspec.DecodeError, LookupError, TypeError) as wrong:
        raise BenchError(f"{file} holds no rows of this command ({wrong}): fix it or move it") from None


def _key(entry: Row) -> str:
    return msgspec.json.encode([entry["options"], entry["case"], entry["number"]]).decode()
