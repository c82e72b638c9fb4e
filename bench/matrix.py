"""Simulated runs by the matrix: cases × contenders × seeds. A row that is known is kept, the others are computed.

A job is one run: a scenario, what is set over it, a policy with its settings, and a seed. Its row follows from these
and from the code. Rows are appended to a file as JSON lines, each under the hash of its job and of the code, so an
interrupted matrix continues where it stopped.
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
from contracts.validation import InvalidSettingsError, text_in
from grouping import Partitioner
from loadgen.schedule import Spacing, Split

if TYPE_CHECKING:
    from bench.scenario import Scenario

ROOT: Final = Path(__file__).parents[1]
MATRICES_FILE: Final = Path(__file__).parent / "matrices.toml"
AXES_FILE: Final = Path(__file__).parent / "axes.toml"
FILE: Final = "results.jsonl"
FAILED: Final = "failed"
"""Key of a row that has a reason instead of figures."""
OPTIMUM: Final = "optimum"
"""How a job is run that asks for the cheapest schedule instead of a policy."""
DECIDING: Final = (
    *("contracts/**/*.py", "grouping/**/*.py", "loadgen/**/*.py", "autoscaler/**/*.py", "report/measures.py"),
    *("bench/scenario.py", "bench/sections.py", "bench/scenarios/*.toml", "bench/simulation/**/*.py", "studies/*.py"),
)
"""Files from which every row follows. The live autoscaler is not one of them."""
NOT_DECIDING: Final = ("autoscaler/live/", "autoscaler/keda/", "autoscaler/shadow/", "loadgen/drivers/")
AT_HEARTBEATS: Final = (RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE_STICKY, RebalanceProtocol.KIP848)
"""Rebalance protocols in which each member learns of a change at its own next heartbeat."""

Changes = tuple[tuple[str, Any], ...]
"""(Key, value) over those of a scenario, as `--set` takes them, sorted by key."""
Row = dict[str, Any]
"""Figures of one run by name; or `FAILED` and the reason."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Equal jobs have equal rows."""

    scenario: str
    """Name, or path of a TOML file."""
    policy: str
    seed: int = 1
    changes: Changes = ()
    how: str = ""
    """OPTIMUM, or a name that the caller's own work understands; empty: the policy is simply simulated."""

    def question(self) -> "Scenario":
        """Return the scenario with all changes. Raises InvalidSettingsError."""
        from bench.scenario import load_scenario  # noqa: PLC0415  numpy only where it is needed
        from loadgen.trace import read_trace  # noqa: PLC0415

        told = {**dict(self.changes), "autoscaler.policy": self.policy, "seed": self.seed}
        found = load_scenario(self.scenario, told)
        if not found.load.trace:
            return found
        return found.playing(read_trace(Path(found.load.trace), found.payment.partitions))

    def key(self) -> str:
        """Return the hash of the job, of the files that it names and of the code."""
        named = [_digest(Path(str(one))) for one in (self.scenario, dict(self.changes).get("load.trace", ""))]
        known = (self, named, policy_version(self.policy), code_version())
        return sha256(msgspec.json.encode(known)).hexdigest()[:24]

    def __str__(self) -> str:
        changes = "".join(f", {key}={value}" for key, value in self.changes)
        how = f" ({self.how})" if self.how else ""
        return f"{self.scenario}, {self.policy}{how}, seed {self.seed}{changes}"


@cache
def code_version(root: Path = ROOT) -> str:
    """Return a fingerprint of the code from which rows follow."""
    digest = sha256()
    for path in sorted({path for pattern in DECIDING for path in root.glob(pattern)}):
        name = path.relative_to(root).as_posix()
        if not name.startswith(NOT_DECIDING):
            digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""


def policy_version(policy: str) -> str:
    """Return a fingerprint of a policy's own file, or of the module that a package offers; empty for ours."""
    from autoscaler.policies.registry import GROUP, POLICIES  # noqa: PLC0415  as in `question`

    offer = None if policy in POLICIES else next(iter(entry_points(group=GROUP, name=policy)), None)
    spec = find_spec(offer.module) if offer else None
    return _digest(Path(spec.origin if spec and spec.origin else policy.rpartition(":")[0] or policy))


def simulated(job: Job) -> Row:
    """Run the job. Raises InvalidSettingsError, or ValueError where the simulator refuses it."""
    from bench.simulation.run import run_scenario  # noqa: PLC0415  compiled code only where something is simulated

    question = job.question()
    if question.stages:
        from bench.simulation.chain import run_chain  # noqa: PLC0415

        return dict(msgspec.to_builtins(run_chain(question)[1]))
    if job.how == OPTIMUM:
        from bench.simulation.optimum import find_optimum  # noqa: PLC0415
        from bench.simulation.sent import sent_by  # noqa: PLC0415

        return dict(msgspec.to_builtins(find_optimum(question, sent_by(question))[0]))
    return dict(msgspec.to_builtins(run_scenario(question, keep_events=False)[1]))


Work = Callable[[Job], Row]
"""How a job is done: a function of a module, because worker processes import it."""
Announce = Callable[[int, int, str], None]
"""Called with how many rows are known, how many there will be, and the job that was finished last."""


def run(
    jobs: Iterable[Job],
    folder: Path,
    *,
    processes: int = 0,
    announce: Announce = lambda *_: None,
    work: Work = simulated,
) -> dict[Job, Row]:
    """Return the row of every job: those in `folder`, and the others computed by so many processes (0: all cores).

    Rows are in `folder` as soon as they are finished. A job that fails, or whose process dies, has a row with `FAILED`,
    which is not kept.
    """
    keys = {job: job.key() for job in dict.fromkeys(jobs)}
    kept = read_rows(folder)
    rows = {job: kept[key] for job, key in keys.items() if key in kept}
    announce(len(rows), len(keys), "")
    missing = [job for job in keys if job not in rows]
    with closing(finished(missing, work, processes or usable_cores())) as outcomes:
        for job, row in outcomes:
            rows[job] = row
            if FAILED not in row:
                _append(folder, keys[job], row)
            announce(len(rows), len(keys), str(job))
    return rows


def read_rows(folder: Path) -> dict[str, Row]:
    """Return the kept rows by key. A line that was cut off is left out, and ended so that the next one is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    path, rows = folder / FILE, dict[str, Row]()
    text = path.read_bytes() if path.exists() else b""
    for line in text.splitlines():
        with suppress(msgspec.DecodeError, TypeError, ValueError):
            key, row = msgspec.json.decode(line)
            rows[key] = row
    if text and not text.endswith(b"\n"):
        with path.open("ab") as file:
            file.write(b"\n")
    return rows


def _append(folder: Path, key: str, row: Row) -> None:
    with (folder / FILE).open("ab") as file:
        file.write(msgspec.json.encode((key, row)) + b"\n")


def usable_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def finished(jobs: Sequence[Job], work: Work, processes: int) -> Generator[tuple[Job, Row], None, None]:
    """Yield each job with its row as it is finished. Closing the generator ends every process.

    When a process dies, its pool cannot say which job it had: each job that was running is tried again alone, and fails
    only if its process dies again.
    """
    together, suspects = list(reversed(jobs)), list[Job]()
    context = multiprocessing.get_context("spawn")  # a fork would copy threads and locks of the caller
    resource_tracker.ensure_running()  # it changes the signal mask, so before `_interrupt_held`
    while together or suspects:
        alone = not together
        waiting, most = ([suspects.pop()], 1) if alone else (together, min(processes, len(together)))
        running: dict[Future[Row], Job] = {}
        before = set(multiprocessing.active_children())
        pool = ProcessPoolExecutor(most, mp_context=context, initializer=_begin)
        try:
            while waiting or running:
                while waiting and len(running) < most:
                    with _interrupt_held():  # the first call starts the processes, which inherit the mask
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
            yield job, {FAILED: "its process died twice; memory may have been short"}


def _row(work: Work, job: Job) -> Row:
    try:
        return work(job)
    except InvalidSettingsError as wrong:
        return {FAILED: "; ".join(wrong.problems)}
    except Exception as wrong:  # the fault of one job does not end the others
        return {FAILED: f"{type(wrong).__name__}: {wrong}"}


@contextmanager
def _interrupt_held() -> Iterator[None]:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin() -> None:
    """Prepare a worker: only its parent reacts to Ctrl-C, and the worker does not outlive its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for handled in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(handled, signal.SIG_DFL)

    def follow() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def sorted_changes(*tables: Mapping[str, Any]) -> Changes:
    """Return changes as a job has them, the last of each key; the order in which they are named makes no difference."""
    merged = {key: value for table in tables for key, value in flat(table)}
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(merged.items()))


def flat(table: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, value) of nested tables."""
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


class Contender(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A policy with settings over its own."""

    policy: str
    name: str = ""
    """Label of the contender; empty: the policy's name."""
    set: dict[str, Any] = {}

    @property
    def label(self) -> str:
        """The name in tables."""
        return self.name or self.policy


class Case(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario with changes. Contenders are compared within one case."""

    scenario: str
    set: dict[str, Any] = {}
    label: str = ""
    """The scenario and its changes, except those of the axis."""
    point: str = ""
    """The place of the case on the matrix's axis."""

    def job(self, contender: Contender, seed: int = 1) -> Job:
        """Return the run of a contender with a seed."""
        changes = sorted_changes(self.set, contender.set)
        return Job(scenario=self.scenario, policy=contender.policy, seed=seed, changes=changes)

    def jobs(self, contender: Contender, seeds: int) -> tuple[list[Job], tuple[str, ...]]:
        """Return a job for each seed from 1, or one where nothing is random; and what is random, in words.

        Random phases are stratified: seed k of n has its ticks within the k-th n-th of the interval after the bursts of
        the load, or after its whole seconds. So a few seeds cover all phases.
        """
        first = self.job(contender)
        question = first.question()
        parts = random_parts(question)
        phase = question.load.burst_phase_s == "random"
        if not parts and not phase:
            return [first], ()
        if not phase:
            return [self.job(contender, seed) for seed in range(1, seeds + 1)], parts
        plain = {key: value for key, value in first.changes if not key.endswith("burst_phase_s")}
        found = []
        for seed in range(1, seeds + 1):
            offset_s = (seed - 1 + Random(seed).random()) / seeds * question.autoscaler.decision_interval_s
            changes = {**plain, "load.burst_phase_s": 0.0, "autoscaler.tick_offset_s": offset_s // 1e-6 / 1e6}
            found.append(msgspec.structs.replace(first, seed=seed, changes=sorted_changes(changes)))
        return found, parts if "bursts" in parts else ("phase", *parts)


def random_parts(question: "Scenario") -> tuple[str, ...]:
    """Return the parts of this scenario that are drawn at random. None: every seed gives the same run."""
    world, load = question.simulation, question.load
    protocol = question.payment.runtime or question.payment.rebalance_protocol
    drawn = {
        "split": (world.split or load.split) is Split.RANDOM,
        "spacing": load.spacing is Spacing.POISSON,
        "bursts": load.spacing is Spacing.BURST and (load.burst_phase_s == "random" or load.burst_jitter_s > 0),
        "keys": load.key_skew > 0 or load.partitioner is not Partitioner.EXPLICIT,
        "heartbeats": protocol in AT_HEARTBEATS and question.payment.heartbeat_s > 0,
        "start-up": isinstance(world.startup_s, str),
        "service times": world.distribution != "deterministic",
        "lost observations": world.observation_loss > 0,
    }
    return tuple(name for name, is_random in drawn.items() if is_random)


class Axis(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One setting over a range."""

    varies: str
    """The varied quantity, in words with its unit."""
    values: list[Any]
    """Of `key`; or a table of changes for each point."""
    key: str = ""
    set: dict[str, Any] = {}
    """Set at every point."""

    def points(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the label and the changes of each point."""
        for value in self.values:
            changes = value if isinstance(value, dict) else {self.key: value}
            yield ", ".join(map(str, changes.values())), self.set | changes


class Matrix(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A comparison, as its file has it; a case or a contender without changes is its name."""

    title: str
    case: list[str | Case] = []
    contender: list[str | Contender] = []
    seeds: int = 20
    optimum: bool = False
    """Also look for the cheapest schedule of each case and seed."""
    random: int = 0
    """Number of random scenarios that are cases, too."""
    like: str = ""
    """Another matrix, whose contenders and constant counts take part."""
    counts: list[int] = []
    """Constant counts that take part in every case with as many partitions."""
    axis: str | Axis = ""
    """Name of an axis of axes.toml, or an axis of its own."""
    set: dict[str, Any] = {}
    """Set in every case, over all others."""

    def over(self) -> Axis | None:
        """Return the axis. Raises InvalidSettingsError for a name that is not known."""
        if isinstance(self.axis, Axis):
            return self.axis
        return axis_called(self.axis) if self.axis else None

    def swept(self) -> list[Case]:
        """Return the cases with all changes; with an axis, each of them at each point."""
        from bench.random_scenarios import random_case  # noqa: PLC0415  numpy only where it is needed

        named = [Case(scenario=one) if isinstance(one, str) else one for one in self.case]
        every = (*named, *map(random_case, range(1, self.random + 1)))
        changed = [(one.scenario, sorted_changes(one.set, self.set)) for one in every]
        axis = self.over()
        return [
            Case(
                scenario=scenario,
                set={**dict(changes), **more},
                label=", ".join((scenario, *(f"{key}={value}" for key, value in changes))),
                point=point,
            )
            for (scenario, changes), (point, more) in product(changed, axis.points() if axis else [("", {})])
        ]

    def contenders(self) -> list[Contender]:
        """Return the contenders of every case."""
        return [Contender(policy=one) if isinstance(one, str) else one for one in self.contender]

    def playing(self, case: Case) -> list[Contender]:
        """Return all that take part in a case."""
        own = self.contenders()
        partitions = case.job(own[0]).question().payment.partitions if self.counts else 0
        return own + [Contender(policy=f"static-{count}") for count in self.counts if count <= partitions]


def matrix_names() -> list[str]:
    """Return the matrices that are delivered."""
    return sorted(_delivered())


@cache
def _delivered() -> dict[str, Matrix]:
    return msgspec.toml.decode(MATRICES_FILE.read_bytes(), type=dict[str, Matrix])


def read_axes() -> dict[str, Axis]:
    """Return the axes that are delivered, by name."""
    return msgspec.toml.decode(AXES_FILE.read_bytes(), type=dict[str, Axis])


def axis_called(name: str) -> Axis:
    """Return an axis. Raises InvalidSettingsError for a name that is not known."""
    axes = read_axes()
    if name not in axes:
        raise InvalidSettingsError([f"axis {name!r} is {unknown_name(name, axes)}"])
    return axes[name]


def read_matrix(name_or_path: str) -> Matrix:
    """Read a matrix by its name, or by the path of a TOML file. Raises InvalidSettingsError."""
    found = _delivered().get(name_or_path) or _own(Path(name_or_path))
    if not found.like:
        return found
    like = read_matrix(found.like)
    contenders, counts = [*like.contender, *found.contender], found.counts or like.counts
    return msgspec.structs.replace(found, contender=contenders, counts=counts)


def _own(path: Path) -> Matrix:
    text = text_in(path)
    try:
        return msgspec.toml.decode(text, type=Matrix)
    except (msgspec.DecodeError, ValueError) as wrong:
        raise InvalidSettingsError([f"{path}: {wrong}"]) from wrong
