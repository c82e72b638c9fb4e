"""Simulate a matrix of cases × contenders × seeds. Stored rows are reused, missing rows are computed.

A job is one run: a scenario with changes, a policy with its options, and a seed. Job and code determine the row of
figures. Rows are appended to a file as JSON lines with a hash of job and code. An interrupted matrix reads the rows and
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
from itertools import product
from multiprocessing import resource_tracker
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from contracts.rebalance_protocol import RebalanceProtocol
from contracts.settings import unknown_name
from contracts.validation import DECODE_ERRORS, InvalidSettingsError, text_in
from loadgen.schedule import Spacing, Split
from partitioners import Partitioner
from report.run_info import flat

if TYPE_CHECKING:
    from bench.scenario import Scenario

ROOT: Final = Path(__file__).parents[1]
MATRICES_FILE: Final = Path(__file__).parent / "matrices.toml"
AXES_FILE: Final = Path(__file__).parent / "axes.toml"
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
HEARTBEAT_PROTOCOLS: Final = (*RebalanceProtocol,)[1:-1]  # all but the incremental protocol and share groups
"""Rebalance protocols in which each member learns about a rebalance at its next heartbeat."""

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
    from autoscaler.policies.registry import GROUP, POLICIES  # noqa: PLC0415  slow to import

    entry_point = None if policy in POLICIES else next(iter(entry_points(group=GROUP, name=policy)), None)
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


class Contender(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy, with changes of its options or of the scenario, that takes part in a comparison."""

    policy: str
    name: str = ""
    """Name of the contender in tables; empty: that of the policy."""
    set: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """Name of the contender in tables."""
        return self.name or self.policy


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario with changes, in which contenders are compared."""

    scenario: str
    set: dict[str, Any] = {}
    label: str = ""
    """Scenario and changes as text, without the changes of the axis."""
    point: str = ""
    """Label of the point on the axis; empty without an axis."""

    def job(self, contender: Contender, seed: int = 1) -> Job:
        """Return the job of a contender with a seed."""
        changes = sorted_changes(self.set, contender.set)
        return Job(scenario=self.scenario, policy=contender.policy, seed=seed, changes=changes)

    def jobs(self, contender: Contender, seeds: int) -> tuple[list[Job], tuple[str, ...]]:
        """Return a job for each seed from 1, and the names of the random parts. If nothing is random, return one job.

        A random burst phase is the time from a burst (or a whole second) to the next tick. Seed k of n chooses it in
        the k-th of n equal parts of the decision interval, so that a few seeds cover all phases.
        """
        first = self.job(contender)
        scenario = first.read_scenario()
        parts = random_parts(scenario)
        phase = scenario.load.burst_phase_s == "random"
        if not parts and not phase:
            return [first], ()
        if not phase:
            return [self.job(contender, seed) for seed in range(1, seeds + 1)], parts
        plain = {key: value for key, value in first.changes if not key.endswith("burst_phase_s")}
        found = []
        for seed in range(1, seeds + 1):
            offset_s = (seed - 1 + Random(seed).random()) / seeds * scenario.autoscaler.decision_interval_s
            changes = {**plain, "load.burst_phase_s": 0.0, "autoscaler.tick_offset_s": offset_s // 1e-6 / 1e6}
            found.append(msgspec.structs.replace(first, seed=seed, changes=sorted_changes(changes)))
        return found, parts if "bursts" in parts else ("phase", *parts)


def random_parts(scenario: "Scenario") -> tuple[str, ...]:
    """Return the names of the random parts of this scenario; empty: every seed gives the same run."""
    simulation, load = scenario.simulation, scenario.load
    protocol = scenario.payment.runtime or scenario.payment.rebalance_protocol
    parts = {
        "split": (simulation.split or load.split) is Split.RANDOM,
        "spacing": load.spacing is Spacing.POISSON,
        "bursts": load.spacing is Spacing.BURST and (load.burst_phase_s == "random" or load.burst_jitter_s > 0),
        "keys": load.key_skew > 0 or load.partitioner is not Partitioner.EXPLICIT,
        "heartbeats": protocol in HEARTBEAT_PROTOCOLS and scenario.payment.heartbeat_s > 0,
        "start-up": isinstance(simulation.startup_s, str),
        "service times": simulation.distribution != "deterministic",
        "lost observations": simulation.observation_loss > 0,
    }
    return tuple(name for name, is_random in parts.items() if is_random)


class Axis(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A setting that varies over a range."""

    varies: str
    """Title of the varied quantity, with its unit."""
    values: list[Any]
    """Values of `key`; if it is empty, a table of changes for each point."""
    key: str = ""
    set: dict[str, Any] = {}
    """Changes at every point."""

    def points(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the label and the changes of each point."""
        for value in self.values:
            changes = value if isinstance(value, dict) else {self.key: value}
            yield ", ".join(map(str, changes.values())), self.set | changes


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of a matrix file. A case or a contender without changes may be given by its name."""

    title: str
    case: list[str | Case] = []
    contender: list[str | Contender] = []
    seeds: int = 20
    optimum: bool = False
    """Also compute the cheapest schedule of each case and seed."""
    random: tuple[int, int] = (1, 0)
    """First and last number of the random scenarios that are added as cases."""
    like: str = ""
    """Name of another matrix, whose contenders and constant counts also take part."""
    counts: list[int] = []
    """Constant replica counts. Each is a contender in every case that has at least as many partitions."""
    axis: str | Axis = ""
    """An axis, or the name of an axis in axes.toml."""
    set: dict[str, Any] = {}
    """Changes in every case. They override those of the case."""

    def resolve_axis(self) -> Axis | None:
        """Return the axis, or None. Raises InvalidSettingsError if its name is unknown."""
        if isinstance(self.axis, Axis):
            return self.axis
        return find_axis(self.axis) if self.axis else None

    def cases_at_points(self) -> list[Case]:
        """Return the cases with all changes; with an axis, each case at each point."""
        from bench.random_scenarios import random_case  # noqa: PLC0415  numpy only where it is needed

        listed = [Case(scenario=case) if isinstance(case, str) else case for case in self.case]
        every = (*listed, *map(random_case, range(self.random[0], self.random[1] + 1)))
        axis = self.resolve_axis()
        changed = [(case, sorted_changes(case.set, self.set)) for case in every]
        return [
            Case(
                scenario=case.scenario,
                set={**dict(changes), **more},
                label=case.label or ", ".join((case.scenario, *(f"{key}={value}" for key, value in changes))),
                point=point,
            )
            for (case, changes), (point, more) in product(changed, axis.points() if axis else [("", {})])
        ]

    def contenders(self) -> list[Contender]:
        """Return the contenders that take part in every case. Policies with a constant count are not included."""
        return [Contender(policy=entry) if isinstance(entry, str) else entry for entry in self.contender]

    def contenders_of(self, case: Case) -> list[Contender]:
        """Return all contenders of a case. Policies with a constant count are included."""
        own = self.contenders()
        partitions = case.job(own[0]).read_scenario().payment.partitions if self.counts else 0
        return own + [Contender(policy=f"static-{count}") for count in self.counts if count <= partitions]


def matrix_names() -> list[str]:
    """Return the names of the built-in matrices."""
    return sorted(_builtin_matrices())


@cache
def _builtin_matrices() -> dict[str, Matrix]:
    return msgspec.toml.decode(MATRICES_FILE.read_bytes(), type=dict[str, Matrix])


def read_axes() -> dict[str, Axis]:
    """Return the built-in axes by name."""
    return msgspec.toml.decode(AXES_FILE.read_bytes(), type=dict[str, Axis])


def find_axis(name: str) -> Axis:
    """Return a built-in axis. Raises InvalidSettingsError if the name is unknown."""
    axes = read_axes()
    if name not in axes:
        raise InvalidSettingsError([f"axis {name!r} is {unknown_name(name, axes)}"])
    return axes[name]


def read_matrix(name_or_path: str) -> Matrix:
    """Read a matrix by its name, or by the path of a TOML file. Raises InvalidSettingsError."""
    found = _builtin_matrices().get(name_or_path) or _read_file(Path(name_or_path))
    if not found.like:
        return found
    like = read_matrix(found.like)
    contenders, counts = [*like.contender, *found.contender], found.counts or like.counts
    return msgspec.structs.replace(found, contender=contenders, counts=counts)


def _read_file(path: Path) -> Matrix:
    text = text_in(path)
    try:
        return msgspec.toml.decode(text, type=Matrix)
    except (*DECODE_ERRORS, ValueError) as error:
        raise InvalidSettingsError([f"{path}: {error}"]) from error
