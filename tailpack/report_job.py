"""Run Spark's report job in its own process, so that the JVM and memory are freed when the process ends."""

import contextlib
import os
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec
import psutil

from contracts.children import Child, defer_stop_signals, last_log_line, python_module
from report.spark import Task
from tailpack.errors import TailpackError
from tailpack.local.jars import java

DEADLINE_S: Final = 1800.0
POLL_S: Final = 0.25


def write_report(task: Task, *, while_waiting: Callable[[Iterable[int]], None] = lambda _: None) -> None:
    """Run the report job, which writes result.json, events.parquet and report.html into the folder of the task.

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
            with contextlib.suppress(OSError):
                log.parent.mkdir(parents=True, exist_ok=True)
                log.write_bytes(job.log.read_bytes())


def _process_tree(job: Child) -> list[psutil.Process]:
    """Return the process and all its descendants, itself first; empty if it has ended."""
    with contextlib.suppress(psutil.NoSuchProcess):
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
