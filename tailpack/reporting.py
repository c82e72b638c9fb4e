"""Reports of runs that are over, and of topics that nobody here wrote; what of a report is shown."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from bench import BenchError
from report.run_info import EVENTS, RUN_FILE
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.provenance import newest_run
from tailpack.report_job import write_report

if TYPE_CHECKING:
    from report.result import Result


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """What a person may say about what is reported on; None and empty: it was not said."""

    events: str | None = None
    """Path or URI of events that lie elsewhere."""
    journal: str | None = None
    latency_target_s: float | None = None
    percentile: float | None = None

    def slo_arguments(self) -> list[str]:
        """Return what was promised, as words for the job; a run says so itself."""
        said = (("--latency-target-s", self.latency_target_s), ("--percentile", self.percentile))
        return [word for name, value in said if value is not None for word in (name, f"{value:g}")]

    def input_arguments(self) -> list[str]:
        """Return where the input lies, as words for the job."""
        said = (("--events", self.events), ("--journal", self.journal))
        return [word for name, value in said if value is not None for word in (name, str(value))]


def make_report(
    source: str,
    asked: ReportInputs,
    console: Console,
    *,
    master: str,
) -> Path:
    """Report on the run in the folder `source`; return that folder. Raises TailpackError."""

    def write(folder: Path, words: Sequence[str] = ()) -> Path:
        with console.status("Spark computes the report"):
            write_report(folder, master=master, extra=words, announce=lambda said: console.print(said, highlight=False))
        return folder

    if asked.events is not None:
        return write(Path(source), _custom_events_arguments(Path(source), asked))
    if asked.journal is not None:
        raise TailpackError("--journal goes with --events")
    if not Path(source).is_dir():
        raise TailpackError(f"{source}: no such run; {_newest_hint()}")
    if asked.slo_arguments():
        raise TailpackError(f"a run brings what was promised; leave out {asked.slo_arguments()[0]}")
    check_run(Path(source))
    folder = Path(source)
    if not _report_without_spark(folder, master):
        with _leftover_broker(folder, console):
            write(folder)
    return folder


def _report_without_spark(folder: Path, master: str) -> bool:
    """Report on a run whose events lie in its folder, unless they are too many. Raises TailpackError."""
    from report import ReportError  # noqa: PLC0415  numpy only where it is needed
    from report.figures import needs_spark, report_stored  # noqa: PLC0415
    from report.page import page  # noqa: PLC0415

    try:
        if needs_spark(folder / EVENTS, master):
            return False
        page.write(report_stored(folder), folder / page.PAGE_FILE)
    except ReportError as wrong:
        raise TailpackError(f"the report failed: {wrong}") from wrong
    return True


def newest_in(out: Path) -> Path:
    """Return the newest run in `out`. Raises TailpackError where there is none."""
    if (found := newest_run(out)) is None:
        raise TailpackError(f"there is no run in {out}: name the folder of one, or make one: tailpack demo")
    return found


def _newest_hint() -> str:
    found = newest_run(Path("out"))
    return f"newest: {found}" if found else "there is none in out; make one: tailpack demo"


def _custom_events_arguments(folder: Path, asked: ReportInputs) -> list[str]:
    """Make the folder, and return what the job is told: of the run in it, or of somebody's own events."""
    words = [*asked.input_arguments(), *asked.slo_arguments()]
    if (folder / RUN_FILE).exists():
        if asked.slo_arguments():
            raise TailpackError(f"{folder / RUN_FILE} says what was promised; leave out {asked.slo_arguments()[0]}")
    elif asked.latency_target_s is None:
        raise TailpackError(
            f"{folder} holds no {RUN_FILE}: name the folder of the run, or say what was promised of these events, "
            "as --latency-target-s 0.5 (and --percentile 0.999)"
        )
    else:
        words += ["--command", shlex.join(["tailpack", "report", str(folder), *words])]
    folder.mkdir(parents=True, exist_ok=True)
    return words


@contextmanager
def _leftover_broker(folder: Path, console: Console) -> Iterator[None]:
    """Run the broker whose data a run that was interrupted left in its folder: its topics are still to be read."""
    broker = Broker(folder / "kafka")
    started = broker.folder.exists() and broker.address() is None
    try:
        if started:
            with console.status("starting the run's Kafka"):
                broker.start()
        yield
    finally:
        if started:
            broker.stop()


def check_run(folder: Path) -> None:
    """Raise TailpackError where `folder` is not that of a run."""
    if not (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} is not the folder of a run: it holds no {RUN_FILE}")


def load_result(folder: Path) -> "Result":
    """Return the report that the run in `folder` has. Raises TailpackError where it has none."""
    from report.result import RESULT_FILE, Result  # noqa: PLC0415

    try:
        return Result.load(folder)
    except FileNotFoundError as missing:
        raise TailpackError(f"{folder}: it holds no {RESULT_FILE}; without --kept it is computed") from missing
    except (OSError, msgspec.DecodeError) as broken:
        raise TailpackError(f"{folder / RESULT_FILE}: not a result ({broken})") from broken


def add_other_policies(result: "Result", folder: Path, console: Console) -> "Result":
    """Return the result with what other policies would have come to on its events, saved with its page.

    It stays as it is where its events cannot be simulated, and a line says why.
    """
    from bench.replay import simulate_other_policies  # noqa: PLC0415  compiled code only where it is needed
    from report.page import page  # noqa: PLC0415

    try:
        with console.status("the same events under other policies"):
            found = simulate_other_policies(folder)
    except BenchError as why:
        console.print(f"other policies were not tried on these events: {why}", highlight=False, markup=False)
        return result
    whole_result = msgspec.structs.replace(result, simulate_other_policies=found)
    whole_result.save(folder)
    page.write(whole_result, folder / page.PAGE_FILE)
    return whole_result


def show(result: "Result", folder: Path, console: Console, *, as_json: bool) -> None:
    """Print the key figures and where the page is; the whole result on standard output as JSON where that is wanted."""
    from report.page.answers import show  # noqa: PLC0415

    show(result, console)
    console.print(f"report: {folder / 'report.html'}", highlight=False, soft_wrap=True)
    if as_json:
        print_all((folder / "result.json").read_text(encoding="utf-8").rstrip() + "\n")


def print_all(text: str) -> None:
    """Print `text`, all of it. Raises TailpackError where standard output does not take it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as refused:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try the rest again at its end
        raise TailpackError(f"standard output does not take the report: {refused.strerror}") from refused


def whole(result: "Result") -> int:
    """Return the exit status that tells whether every order had each of its effects exactly once."""
    counted = result.effects.orders > 0 if result.effects else result.world == "simulated" and not result.lost
    return 0 if counted and result.whole else 1
