"""Run Spark's report job in its own process, so that the JVM and memory are freed when the process ends."""

import contextlib
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import psutil

from contracts.children import STOP_DEADLINE_S, defer_stop_signals, last_log_line, python_module
from tailpack.errors import TailpackError
from tailpack.local.jars import java

DEADLINE_S: Final = 1800.0


def write_report(
    run: Path,
    *,
    master: str = "",
    while_waiting: Callable[[Iterable[int]], None] = lambda _: None,
    extra: Sequence[str] = (),
) -> None:
    """Run the report job for the folder `run`, in which it writes result.json, events.parquet and report.html.

    while_waiting: called every half second with the process ids of the job.
    Raises TailpackError with the job's last line if it fails, and also if it takes longer than half an hour.
    """
    log = run / "logs" / "report.log" if run.is_dir() else Path("/dev/null")
    if master or not extra:  # files of events need no JVM unless they are large
        java()
    arguments = [str(run), *extra, "--master", master]
    job: subprocess.Popen[bytes] | None = None
    with tempfile.NamedTemporaryFile() as output:  # not in the run folder, whose disk may be full
        try:
            with defer_stop_signals():
                job = subprocess.Popen(
                    [*python_module("report.spark"), *arguments],
                    stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
                )  # fmt: skip
            deadline_s = time.monotonic() + DEADLINE_S
            while time.monotonic() < deadline_s:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    if job.wait(0.5):
                        last = last_log_line(Path(output.name)) or "it printed nothing"
                        raise TailpackError(f"the report failed: {last.removeprefix('report: ')}")
                    return
                while_waiting(each.pid for each in _process_tree(job))
            raise TailpackError(f"the report was not finished within {DEADLINE_S:.0f} s; see {log}")
        finally:
            if job:
                with defer_stop_signals():
                    _end_process_tree(job)
            output.seek(0)
            with contextlib.suppress(OSError):
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_bytes(output.read())


def _process_tree(process: "subprocess.Popen[bytes]") -> list[psutil.Process]:
    """Return the process and all its descendants, itself first; empty if it has ended."""
    try:
        found = psutil.Process(process.pid)
        return [found, *found.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _end_process_tree(process: "subprocess.Popen[bytes]") -> None:
    """Terminate a process, then kill its descendants that still run."""
    others = _process_tree(process)[1:]
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(STOP_DEADLINE_S)
    process.kill()
    process.wait()
    for survivor in psutil.wait_procs(others, timeout=1)[1]:
        survivor.kill()
