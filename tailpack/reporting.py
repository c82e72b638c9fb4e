"""Report on finished runs and on events of other systems, and print the report."""

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from rich.console import Console

from bench import BenchError
from report.run_info import RUN_FILE
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.report_job import write_report

if TYPE_CHECKING:
    from report.result import Result


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """Inputs of a report on the command line; None: the option is not used."""

    events: str | None = None
    """Path or URI of events outside the run folder."""
    journal: str | None = None
    latency_target_s: float | None = None
    percentile: float | None = None

    def slo_arguments(self) -> list[str]:
        """Return the SLO as arguments of the job. They are only needed for events without a run folder."""
        options = (("--latency-target-s", self.latency_target_s), ("--percentile", self.percentile))
        return [word for name, value in options if value is not None for word in (name, f"{value:g}")]

    def input_arguments(self) -> list[str]:
        """Return the locations of the input as arguments of the job."""
        options = (("--events", self.events), ("--journal", self.journal))
        return [word for name, value in options if value is not None for word in (name, str(value))]


def make_report(source: str, inputs: ReportInputs, console: Console, *, master: str) -> Path:
    """Report on the run in the folder `source`, or on the given events; return the folder. Raises TailpackError."""
    folder = Path(source)
    if inputs.events is not None:
        words = _custom_events_arguments(folder, inputs)
        with console.status("computing the report"):
            write_report(folder, master=master, extra=words)
        return folder
    if inputs.journal is not None:
        raise TailpackError("--journal needs --events")
    if not Path(source).is_dir():
        raise TailpackError(f"{source}: no such run; pass a folder in out, or make a run: tailpack demo")
    if inputs.slo_arguments():
        raise TailpackError(f"{source}: the run defines its own SLO; leave out {inputs.slo_arguments()[0]}")
    check_run(Path(source))
    with _leftover_broker(folder, console), console.status("computing the report"):
        report_run(folder, master)
    return folder


def report_run(folder: Path, master: str, **more: Any) -> None:
    """Report on a run, by Spark if it is large or `master` is set. more: for `write_report`. Raises TailpackError."""
    from report import ReportError  # noqa: PLC0415  numpy only where it is needed
    from report.page import page  # noqa: PLC0415
    from report.topics import report_here  # noqa: PLC0415

    try:
        result = None if master else report_here(folder)
    except ReportError as error:
        raise TailpackError(f"the report failed: {error}") from error
    if result is None:
        write_report(folder, master=master, **more)
    else:
        page.write(result, folder / page.PAGE_FILE)


def newest_in(out: Path) -> Path:
    """Return the newest run in `out`. Raises TailpackError if it has no run."""
    if runs := [*out.glob(f"*/{RUN_FILE}")]:
        return max(runs, key=lambda file: file.stat().st_mtime).parent
    raise TailpackError(f"{out} has no run: pass RUN_DIR, or make a run: tailpack demo")


def _custom_events_arguments(folder: Path, inputs: ReportInputs) -> list[str]:
    """Create the folder, and return the arguments of the job for events outside it."""
    words = [*inputs.input_arguments(), *inputs.slo_arguments()]
    if (folder / RUN_FILE).exists():
        if inputs.slo_arguments():
            raise TailpackError(f"{folder / RUN_FILE} defines the SLO; leave out {inputs.slo_arguments()[0]}")
    elif inputs.latency_target_s is None:
        raise TailpackError(
            f"{folder} has no {RUN_FILE}: pass the folder of the run, or the SLO of these events, "
            "for example --latency-target-s 0.5 --percentile 0.999"
        )
    else:
        words += ["--command", shlex.join(["tailpack", "report", str(folder), *words])]
    folder.mkdir(parents=True, exist_ok=True)
    return words


@contextmanager
def _leftover_broker(folder: Path, console: Console) -> Iterator[None]:
    """Run a broker on the data of an interrupted run, so that the run's topics can be read."""
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
    """Raise TailpackError if `folder` is not the folder of a run."""
    if not (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} is not the folder of a run: it has no {RUN_FILE}")


def load_result(folder: Path) -> "Result":
    """Return the existing result of the run in `folder`. Raises TailpackError if it has none."""
    from report.result import RESULT_FILE, Result  # noqa: PLC0415

    try:
        return Result.load(folder)
    except FileNotFoundError as missing:
        raise TailpackError(f"{folder} has no {RESULT_FILE}; leave out --kept to compute it") from missing
    except (OSError, ValueError, RecursionError, msgspec.DecodeError) as error:
        raise TailpackError(f"{folder / RESULT_FILE}: not a valid result ({error})") from error


def add_other_policies(result: "Result", folder: Path, console: Console) -> "Result":
    """Simulate the run's events under other policies; save and return the result with their figures.

    If the events cannot be simulated, print why and return the result unchanged.
    """
    from bench.replay import simulate_other_policies  # noqa: PLC0415  compiled code only where it is needed
    from report.page import page  # noqa: PLC0415

    try:
        with console.status("simulating the same events under other policies"):
            found = simulate_other_policies(folder)
    except BenchError as error:
        console.print(f"other policies were not simulated: {error}", highlight=False, markup=False)
        return result
    whole_result = msgspec.structs.replace(result, other_policies=found)
    whole_result.save(folder)
    page.write(whole_result, folder / page.PAGE_FILE)
    return whole_result


def show(result: "Result", folder: Path, console: Console, *, as_json: bool) -> None:
    """Print the key figures and the path of the page. as_json: whether to print the result on standard output too."""
    from report.page.answers import show  # noqa: PLC0415

    show(result, console)
    console.print(f"report: {folder / 'report.html'}", highlight=False, soft_wrap=True)
    if as_json:
        print_all((folder / "result.json").read_text(encoding="utf-8").rstrip() + "\n")


def print_all(text: str) -> None:
    """Print all of `text`. Raises TailpackError if standard output rejects it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # otherwise Python would write the rest at exit
        raise TailpackError(f"the report could not be written to standard output: {error.strerror}") from error


def exit_status(result: "Result") -> int:
    """Return 0 if every order had each of its effects exactly once, else 1."""
    counted = result.effects.orders > 0 if result.effects else result.world == "simulated" and not result.lost
    return 0 if counted and result.effects_complete else 1
