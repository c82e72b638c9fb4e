"""Run jobs in worker processes. Stored rows are reused, missing rows are computed.

A job is one run: a scenario with changes, a policy with its options, and a seed. Job and code determine the row of
figures. Rows are appended to a file as JSON lines with a hash of job and code. An interrupted run reads the rows and
continues.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from functools import cache
from hashlib import sha256
from importlib.metadata import entry_points
from importlib.util import find_spec
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from report.run_info import flat

if TYPE_CHECKING:
    from bench.scenario import Scenario

ROOT: Final = Path(__file__).parents[1]
FILE: Final = "results.jsonl"
FAILED: Final = "failed"
"""Key in the row of a failed job, whose value is the reason. Such a row has no figures."""
OPTIMUM: Final = "optimum"
"""Value of `Job.how` for jobs that compute the cheapest schedule instead of simulating a policy."""
ROW_SOURCES: Final = (
    *("contracts/**/*.py", "partitioners/**/*.py", "loadgen/**/*.py", "autoscaler/**/*.py", "report/measures.py"),
    *("bench/scenario.py", "bench/sections.py", "bench/scenarios/*.toml", "bench/simulation/**/*.py"),
    "bench/backtest/parts.py",
)
"""Files that determine the rows. If one of them changes, all stored rows are computed again."""
EXCLUDED_SOURCES: Final = ("autoscaler/live/", "autoscaler/keda/", "loadgen/drivers/")

Changes = tuple[tuple[str, Any], ...]
"""Pairs (key, value) that override settings of a scenario, as `--set` does, sorted by key."""
Row = dict[str, Any]
"""Name → figure of one run; or FAILED → reason."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Equal jobs have equal rows."""

    scenario: str
    """Name, or path of a TOML file."""
    policy: str
    seed: int = 1
    changes: Changes = ()
    how: str = ""
    """Kind of work: OPTIMUM, or a name that the `work` passed to `run` handles; empty: simulate the policy."""

    def read_scenario(self) -> "Scenario":
        """Return the scenario with all changes. Raises InvalidSettingsError."""
        from bench.scenario import load_scenario  # noqa: PLC0415  numpy only where it is needed
        from loadgen.trace import read_trace  # noqa: PLC0415

        changes = {**dict(self.changes), "autoscaler.policy": self.policy, "seed": self.seed}
        scenario = load_scenario(self.scenario, changes)
        if not scenario.load.trace:
            return scenario
        return scenario.with_trace(read_trace(Path(scenario.load.trace), scenario.payment.partitions))

    def key(self) -> str:
        """Return the hash of the job, its files and the code."""
        files = [_digest(Path(str(path))) for path in (self.scenario, dict(self.changes).get("load.trace", ""))]
        content = (self, files, policy_version(self.policy), code_version())
        return sha256(msgspec.json.encode(content)).hexdigest()[:24]

    def __str__(self) -> str:
        changes = "".join(f", {key}={value}" for key, value in self.changes)
        how = f" ({self.how})" if self.how else ""
        return f"{self.scenario}, {self.policy}{how}, seed {self.seed}{changes}"


@cache
def code_version() -> str:
    """Return a hash of the files that determine the rows."""
    digest = sha256()
    for path in sorted({path for pattern in ROW_SOURCES for path in ROOT.glob(pattern)}):
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(EXCLUDED_SOURCES):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def policy_version(policy: str) -> str:
    """Return a hash of the file that defines a policy; empty for a built-in policy."""
    from autoscaler.policies.registry import GROUP, POLICIES, fixed_count  # noqa: PLC0415  slow to import

    built_in = policy in POLICIES or fixed_count(policy)
    entry_point = None if built_in else next(iter(entry_points(group=GROUP, name=policy)), None)
    spec = find_spec(entry_point.module) if entry_point else None
    return _digest(Path(spec.origin if spec and spec.origin else policy.rpartition(":")[0] or policy))


def simulate_job(job: Job) -> Row:
    """Run a job. Raises InvalidSettingsError, or ValueError if the simulator does not support the job."""
    from bench.simulation.run import run_scenario  # noqa: PLC0415  compiled code only where something is simulated

    scenario = job.read_scenario()
    if scenario.stages:
        from bench.simulation.chain import run_chain  # noqa: PLC0415

        return dict(msgspec.to_builtins(run_chain(scenario)[1]))
    if job.how == OPTIMUM:
        from bench.simulation.optimum import find_optimum  # noqa: PLC0415
        from bench.simulation.sent_events import build_events  # noqa: PLC0415

        return dict(msgspec.to_builtins(find_optimum(scenario, build_events(scenario))[0]))
    return dict(msgspec.to_builtins(run_scenario(scenario, keep_events=False)[1]))


Work = Callable[[Job], Row]
"""Function that runs a job. It must be at the top level of a module, because worker processes import it."""
Announce = Callable[[int, int, str], None]
"""Called with the number of finished rows, the number of all rows, and the job that was finished last."""


def run(
    jobs: Iterable[Job],
    folder: Path,
    *,
    processes: int = 0,
    announce: Announce = lambda *_: None,
    work: Work = simulate_job,
) -> dict[Job, Row]:
    """Return the row of every job. Rows that are not stored in `folder` are computed.

    processes: number of worker processes; 0: one per core. Each row is stored as soon as it is finished. If a job
    fails or its process dies, its row contains FAILED and is not stored.
    """
    keys = {job: job.key() for job in dict.fromkeys(jobs)}
    stored = read_rows(folder)
    rows = {job: stored[key] for job, key in keys.items() if key in stored}
    announce(len(rows), len(keys), "")
    missing = [job for job in keys if job not in rows]
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with closing(run_jobs(missing, work, processes or usable)) as outcomes:
        for job, row in outcomes:
            rows[job] = row
            if FAILED not in row:
                with (folder / FILE).open("ab") as file:
                    file.write(msgspec.json.encode((keys[job], row)) + b"\n")
            announce(len(rows), len(keys), str(job))
    return rows


def read_rows(folder: Path) -> dict[str, Row]:
    """Return the stored rows by key. A truncated last line is skipped, and gets a line end."""
    folder.mkdir(parents=True, exist_ok=True)
    path, rows = folder / FILE, dict[str, Row]()
    text = path.read_bytes() if path.exists() else b""
    for line in text.splitlines():
        with suppress(*DECODE_ERRORS, TypeError, ValueError):
            key, row = msgspec.json.decode(line)
            rows[key] = row
    if text and not text.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")
    return rows


def run_jobs(jobs: Sequence[Job], work: Work, processes: int) -> Generator[tuple[Job, Row], None, None]:
    """Yield each job with its row as soon as it is finished. Closing the generator ends every process.

    If a process dies, the pool does not report which job it ran. So all jobs that were running are run again, one by
    one. A job fails if its process dies again.
    """
    together, suspects = list(reversed(jobs)), list[Job]()
    context = multiprocessing.get_context("spawn")  # fork would copy locks of the caller's threads
    resource_tracker.ensure_running()  # now, because it would change the signal mask later
    while together or suspects:
        alone = not together
        waiting, most = ([suspects.pop()], 1) if alone else (together, min(processes, len(together)))
        running: dict[Future[Row], Job] = {}
        before = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(most, mp_context=context, initializer=_prepare_worker)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    with _interrupt_blocked():  # the first call starts the processes, which inherit the mask
                        running[pool.submit(_row, work, waiting[-1])] = waiting[-1]
                    waiting.pop()
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    row = future.result()
                    yield running.pop(future), row
        except BrokenProcessPool:
            suspects += [] if alone else running.values()
        finally:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
            pool.shutdown(cancel_futures=True)
        for job in (*running.values(), *waiting) if alone else ():
            yield job, {FAILED: "its process died twice: it takes too long, or memory is full (use fewer --processes)"}


def _row(work: Work, job: Job) -> Row:
    try:
        return work(job)
    except InvalidSettingsError as error:
        return {FAILED: "; ".join(error.problems)}
    except Exception as error:  # an error in one job must not end the others
        return {FAILED: f"{type(error).__name__}: {error}"}


@contextmanager
def _interrupt_blocked() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _prepare_worker() -> None:
    """Make this worker process ignore Ctrl-C, which its parent handles, and exit when its parent exits."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for handled in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(handled, signal.SIG_DFL)

    def follow() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def sorted_changes(*tables: Mapping[str, Any]) -> Changes:
    """Merge tables of changes into the sorted form that a job has. If a key occurs twice, its last value counts."""
    merged = {key: value for table in tables for key, value in flat(table)}
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(merged.items()))
