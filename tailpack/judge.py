"""Have Spark judge a run: the report job as a process of its own, so that its JVM and memory end with it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import psutil

from tailpack.errors import TailpackError
from tailpack.interrupts import uninterrupted
from tailpack.jars import ensure
from tailpack.java import java

DEADLINE_S: Final = 1800.0


def judge(
    run: Path,
    *,
    master: str = "local[2]",
    announce: Callable[[str], None] = lambda _: None,
    while_waiting: Callable[[dict[str, int]], None] = lambda _: None,
    extra: tuple[str, ...] = (),
) -> None:
    """Run the report job on the run's folder; it leaves result.json, events.parquet and report.html there.

    while_waiting: called every half second with name → pid of the job's processes.
    Raises TailpackError with the job's own line when it fails.
    """
    java()
    command = [
        sys.executable,
        "-m",
        "bench.latency_job",
        str(run),
        "--master",
        master,
        "--jars",
        str(ensure("spark", announce)),
        *extra,
    ]
    log = run / "logs" / "report.log" if run.is_dir() else Path("/dev/null")
    log.parent.mkdir(parents=True, exist_ok=True)
    job: subprocess.Popen[bytes] | None = None
    waited_s = 0.0
    try:
        with uninterrupted(), log.open("wb") as output:
            job = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
            )
        while waited_s < DEADLINE_S:
            try:
                status = job.wait(0.5)
            except subprocess.TimeoutExpired:
                waited_s += 0.5
                while_waiting(_family(job.pid))
                continue
            if status:
                raise TailpackError(f"the report failed: {_last_line(log)}")
            return
        raise TailpackError(f"the report was not ready within {DEADLINE_S:.0f} s; see {log}")
    finally:
        if job:
            with uninterrupted():
                _end(job)


def _family(pid: int) -> dict[str, int]:
    try:
        children = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return {}
    return {"spark driver": pid} | {f"spark {index}": child.pid for index, child in enumerate(children)}


def _end(job: "subprocess.Popen[bytes]") -> None:
    """The job starts a JVM of its own: stop both."""
    try:
        family = psutil.Process(job.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return
    if job.poll() is None:
        job.terminate()
    for process in psutil.wait_procs(family, timeout=10)[1]:
        process.kill()
    job.wait()


def _last_line(log: Path) -> str:
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else f"it said nothing; see {log}"
