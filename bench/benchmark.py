"""Run benchmarks: measure each case, store every finished row, and continue after an interruption.

A benchmark is a dataclass in its own file. Its fields are the options of its command, `cases` returns the names of its
cases, and `measure` measures one case. BENCHMARKS in bench/benchmarks lists the commands.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
from typer import Option

from bench import BenchError
from contracts.children import Child
from contracts.connection import Connection
from contracts.settings import duration_s
from contracts.validation import DECODE_ERRORS, as_environment
from contracts.waiting import WaitTimeoutError
from loadgen.result import part_file_name

Row = dict[str, Any]
"""Figures of one case. A row is invalid if its `problem` is not empty or its `valid` is false."""


def time_option(text: str) -> Any:
    """Return an option whose value is a duration, such as 500ms, 3s or 2m. A number without unit is in seconds."""
    return Option(metavar="TIME", parser=_seconds, help=text)


def _seconds(text: str | float) -> float:
    return text if isinstance(text, float) else float(text) if text.replace(".", "").isdigit() else duration_s(text)


@dataclass(frozen=True)
class Tools:
    """Functions that the command line provides to a benchmark."""

    kafka: Callable[..., AbstractContextManager[Connection]]
    """Runs a broker with all topics. Arguments: those of tailpack.local.topics.temporary_kafka."""
    announce: Callable[..., None]
    """Shows the progress that the arguments `status`, `completed` and `total` describe."""


@dataclass(kw_only=True)
class Benchmark:
    """Base class of benchmarks."""

    COLUMNS: ClassVar[tuple[str, ...]] = ()
    """Figures to show if there are several rows; empty: all."""

    def cases(self) -> Sequence[str]:
        """Return the names of the cases, in order."""
        return ("",)

    @abstractmethod
    def measure(self, case: str, tools: Tools) -> Row:
        """Measure one case and return its figures. All processes that it starts must end before it returns.

        Raises BenchError, WaitTimeoutError.
        """


@dataclass(kw_only=True)
class QuickBenchmark(Benchmark):
    """Base class of benchmarks with a `quick` option. With it, a benchmark measures less and ends within 50 s."""

    quick: Annotated[bool, Option("--quick", help="Measure less, so that it ends within 50 s.")] = False


@dataclass(frozen=True)
class Outcome:
    """The rows that a benchmark has measured."""

    rows: list[Row]
    interrupted: bool
    """Whether Ctrl-C ended the benchmark before all rows were finished."""

    @property
    def figures(self) -> Row:
        """The first row, whose figures are printed as the result."""
        return self.rows[0] if self.rows else {}

    @property
    def valid(self) -> bool:
        """Whether every row is valid."""
        return all(map(is_valid, self.rows))


def is_valid(row: Row) -> bool:
    """Return whether a row is valid."""
    return not row.get("problem") and row.get("valid", True)


def run(
    benchmark: Benchmark, tools: Tools, *, repeat: int = 1, into: Path | None = None, origin: Row | None = None
) -> Outcome:
    """Measure every case `repeat` times, and return the finished rows. Ctrl-C ends it early.

    into: folder of a file to which each finished row is appended, together with `origin`. If the file already has a
    valid row for a case with the same options, the case is not measured again.
    """
    rows, interrupted = list[Row](), False
    file = into / f"{type(benchmark).__name__.lower()}.jsonl" if into else None
    stored = _stored_rows(file)
    tasks = [
        {"options": msgspec.to_builtins(asdict(benchmark)), "case": case, "number": number}
        for number in range(repeat)
        for case in benchmark.cases()
    ]
    rows += [found for task in tasks if (found := stored.get(_key(task)))]
    remaining = [task for task in tasks if _key(task) not in stored]
    try:
        for number, task in enumerate(remaining):
            if len(remaining) > 1:
                tools.announce(status=task["case"], completed=number, total=len(remaining))
            rows.append(row := benchmark.measure(task["case"], tools))
            if row.get("interrupted"):
                raise KeyboardInterrupt
            if file:
                file.parent.mkdir(parents=True, exist_ok=True)
                with file.open("ab") as out:
                    out.write(msgspec.json.encode(task | {"origin": origin, "row": row}) + b"\n")
    except KeyboardInterrupt:
        interrupted = True
    except WaitTimeoutError as error:
        raise BenchError(str(error)) from error
    return Outcome(rows, interrupted)


def environ_of(connection: Connection | None = None, **settings: object) -> dict[str, str]:
    """Return the environment of a child process. Its only TAILPACK_ variables are these settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
    variables = {f"TAILPACK_{name.upper()}": str(value) for name, value in settings.items()}
    return inherited | (as_environment(connection) if connection else {}) | variables


def all_exist(folder: Path, file: str, parts: int = 1) -> bool:
    """Return whether each of the `parts` processes of the load generator has written its `file`."""
    return all((folder / part_file_name(file, part, parts)).exists() for part in range(1, parts + 1))


def check(children: Iterable[Child]) -> bool:
    """Return True. Raises BenchError if one of the processes has ended."""
    for child in children:
        if child.exit_status is not None:
            raise BenchError(f"{child.name} ended too early: {child.ending()}; see {child.log}")
    return True


def _stored_rows(file: Path | None) -> dict[str, Row]:
    lines = file.read_bytes().splitlines() if file and file.exists() else []
    try:
        entries = [msgspec.json.decode(line) for line in lines]
        return {_key(entry): entry["row"] for entry in entries if is_valid(entry["row"])}
    except (*DECODE_ERRORS, LookupError, TypeError) as error:
        raise BenchError(f"{file} contains a line that is not a row ({error}): correct or move the file") from None


def _key(entry: Row) -> str:
    return msgspec.json.encode([entry["options"], entry["case"], entry["number"]]).decode()
