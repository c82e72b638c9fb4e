"""A matrix of cases × contenders × seeds: what a comparison runs. `bench.jobs` runs it."""

from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bench.jobs import Job, sorted_changes
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.settings import unknown_name
from contracts.validation import DECODE_ERRORS, InvalidSettingsError, text_in
from loadgen.schedule import Spacing, Split
from partitioners import Partitioner

if TYPE_CHECKING:
    from bench.scenario import Scenario

MATRICES_FILE: Final = Path(__file__).parent / "matrices.toml"
AXES_FILE: Final = Path(__file__).parent / "axes.toml"
HEARTBEAT_PROTOCOLS: Final = (*RebalanceProtocol,)[1:-1]  # all but the incremental protocol and share groups
"""Rebalance protocols in which each member learns about a rebalance at its next heartbeat."""


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
        if isinstance(self.axis, Axis) or not self.axis:
            return self.axis or None
        axes = read_axes()
        if self.axis not in axes:
            raise InvalidSettingsError([f"axis {self.axis!r} is {unknown_name(self.axis, axes)}"])
        return axes[self.axis]

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
