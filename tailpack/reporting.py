"""Report on finished runs and on events of other systems, and print the report."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec
import psutil
from rich.console import Console

from bench import BenchError
from contracts.children import Child, defer_stop_signals, last_log_line, python_module
from report.run_info import RUN_FILE
from report.spark import Task
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.jars import java

if TYPE_CHECKING:
    from report.result import Result

USUAL_SHARE: Final = 0.999
"""Share of own events that must be in time, unless --percentile is given."""
DEADLINE_S: Final = 1800.0
POLL_S: Final = 0.25


def make_report(task: Task, console: Console) -> Path:
    """Report on the run in the folder of the task, or on its events; return the folder. Raises TailpackError."""
    folder = Path(task.folder)
    if task.events is not None:
        task = _of_own_events(task, folder)
        with console.status("computing the report"):
            write_report(task)
        return folder
    if task.journal is not None:
        raise TailpackError("--journal needs --events")
    if not folder.is_dir():
        raise TailpackError(f"{task.folder}: no such run; pass a folder in out, or make a run: tailpack demo")
    if option := _slo_option(task):
        raise TailpackError(f"{task.folder}: the run defines its own SLO; leave out {option}")
    check_run(folder)
    with _leftover_broker(folder, console), console.status("computing the report"):
        report_run(folder, task.master)
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
        write_report(Task(folder=str(folder), master=master), **more)
    else:
        page.write(result, folder / page.PAGE_FILE)


def write_report(task: Task, *, while_waiting: Callable[[Iterable[int]], None] = lambda _: None) -> None:
    """Run Spark's report job, which writes result.json, events.parquet and report.html into the folder of the task.

    It is a process of its own, whose end frees its JVM and its memory.

    while_waiting: called again and again with the process ids of the job.
    Raises TailpackError with the job's last line if it fails, and also if it takes longer than half an hour.
    """
    run = Path(task.folder)
    log = run / "logs" / "report.log" if run.is_dir() else Path("/dev/null")
    if task.master or task.events is None:  # files of events need no JVM unless they are large
        java()
    command = [*python_module("report.spark"), msgspec.json.encode(task).decode()]
    deadline_s = time.monotonic() + DEADLINE_S
    with tempfile.TemporaryDirectory() as scratch:  # not in the run folder, whose disk may be full
        job = Child("report", command, os.environ, Path(scratch, log.name))
        try:
            job.start()
            while job.exit_status is None:
                if time.monotonic() > deadline_s:
                    raise TailpackError(f"the report was not finished within {DEADLINE_S:.0f} s; see {log}")
                while_waiting(each.pid for each in _process_tree(job))
                time.sleep(POLL_S)
            if job.exit_status:
                last = last_log_line(job.log) or "it printed nothing"
                raise TailpackError(f"the report failed: {last.removeprefix('report: ')}")
        finally:
            with defer_stop_signals():
                _end_process_tree(job)
            with suppress(OSError):
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_bytes(job.log.read_bytes())


def _process_tree(job: Child) -> list[psutil.Process]:
    """Return the process and all its descendants, itself first; empty if it has ended."""
    with suppress(psutil.NoSuchProcess):
        if pid := job.pid:
            found = psutil.Process(pid)
            return [found, *found.children(recursive=True)]
    return []


def _end_process_tree(job: Child) -> None:
    """Terminate a process, then kill its descendants that still run."""
    others = _process_tree(job)[1:]
    job.terminate()
    job.wait()
    for survivor in psutil.wait_procs(others, timeout=1)[1]:
        survivor.kill()


def newest_in(out: Path) -> Path:
    """Return the newest run in `out`. Raises TailpackError if it has no run."""
    if runs := [*out.glob(f"*/{RUN_FILE}")]:
        return max(runs, key=lambda file: file.stat().st_mtime).parent
    raise TailpackError(f"{out} has no run: pass RUN_DIR, or make a run: tailpack demo")


def _of_own_events(task: Task, folder: Path) -> Task:
    """Create the folder, and return the task for events outside it, with their origin."""
    from tailpack.provenance import command  # noqa: PLC0415  numpy only where it is needed

    if (folder / RUN_FILE).exists():
        if option := _slo_option(task):
            raise TailpackError(f"{folder / RUN_FILE} defines the SLO; leave out {option}")
    elif task.latency_target_s is None:
        raise TailpackError(
            f"{folder} has no {RUN_FILE}: pass the folder of the run, or the SLO of these events, "
            "for example --latency-target-s 0.5 --percentile 0.999"
        )
    folder.mkdir(parents=True, exist_ok=True)
    share = USUAL_SHARE if task.percentile is None else task.percentile
    return msgspec.structs.replace(task, percentile=share, command=command())


def _slo_option(task: Task) -> str:
    """Return an option by which the user gave the SLO of events; empty without one."""
    options = {"--latency-target-s": task.latency_target_s, "--percentile": task.percentile}
    return next((name for name, value in options.items() if value is not None), "")


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
