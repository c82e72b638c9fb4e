"""Have Spark report on a run, in a process of its own, so that its JVM and memory end with it."""

import contextlib
import importlib.util
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Final

import psutil

from contracts.children import STOP_DEADLINE_S, defer_stop_signals, python_module
from tailpack.errors import TailpackError
from tailpack.local.jars import ensure, java

DEADLINE_S: Final = 1800.0
SETUP: Final = "TAILPACK_SPARK_SETUP"
"""Environment variable in which `make demo` names the process that is still installing Spark."""


def expect_spark() -> psutil.Process | None:
    """Return the process that is installing Spark, None where Spark is there. Raises TailpackError without either."""
    with contextlib.suppress(psutil.NoSuchProcess, ValueError):
        return psutil.Process(int(os.environ.get(SETUP, "")))
    importlib.invalidate_caches()
    if importlib.util.find_spec("pyspark") is None:  # found, not imported: importing it costs a second
        raise TailpackError("Spark is not installed; `make env` installs it, or: pip install '.[bench]'")
    return None


def wait_for_spark(announce: Callable[[str], None]) -> None:
    """Return when Spark is installed. Raises TailpackError when it cannot be expected any more."""
    if setup := expect_spark():
        announce("waiting for set-up to install Spark, which makes the report")
        setup.wait(DEADLINE_S)
        expect_spark()


def write_report(
    run: Path,
    *,
    master: str = "local[2]",
    announce: Callable[[str], None] = lambda _: None,
    while_waiting: Callable[[dict[str, int]], None] = lambda _: None,
    extra: Sequence[str] = (),
) -> None:
    """Run the report job on the run's folder; it leaves result.json, events.parquet and report.html there.

    while_waiting: called every half second with name → pid of the job's processes.
    Raises TailpackError with the job's own line when it fails, or when it takes longer than half an hour.
    """
    log = run / "logs" / "report.log" if run.is_dir() else Path("/dev/null")
    java()
    wait_for_spark(announce)
    words = [str(run), *extra, "--master", master, "--jars", str(ensure("spark", announce))]
    job: subprocess.Popen[bytes] | None = None
    with tempfile.TemporaryFile() as output:  # not yet the log: a full disk would keep the line that says so
        try:
            with defer_stop_signals():
                job = subprocess.Popen(
                    [*python_module("report.spark"), *words],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                )  # fmt: skip
            deadline_s = time.monotonic() + DEADLINE_S
            while time.monotonic() < deadline_s:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if job.wait(0.5):
                        raise TailpackError(f"the report failed: {_last_line(output)}")
                    return
                members = enumerate(_family(job))
                while_waiting({f"spark {number}" if number else "spark driver": one.pid for number, one in members})
            raise TailpackError(f"the report was not ready within {DEADLINE_S:.0f} s; see {log}")
        finally:
            if job:
                with defer_stop_signals():
                    _end_family(job)
            _keep(output, log)


def _family(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """Return the process and all that it has started, itself first; nothing once it is gone."""
    try:
        found = psutil.Process(process.pid)
        return [found, *found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _end_family(process: "subprocess.Popen[bytes]") -> None:
    """Ask a process to end that has others of its own, as Python has a JVM; end by force what is still there then."""
    others = _family(process)[1:]
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_DEADLINE_S)
    process.kill()
    process.wait()
    for left in psutil.wait_procs(others, timeout=1)[1]:
        left.kill()


def _last_line(output: IO[bytes]) -> str:
    output.seek(0)
    lines = [line for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].removeprefix("report: ") if lines else "it said nothing"


def _keep(output: IO[bytes], log: Path) -> None:
    output.seek(0)
    with contextlib.suppress(OSError):
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_bytes(output.read())
