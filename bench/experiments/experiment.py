"""What is asked of the simulator: one run, and a world in which policies are compared over seeds."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bench.simulation.result import SimulationResult

if TYPE_CHECKING:
    from bench.scenario import Scenario
from contracts.delivery import Delivery
from contracts.events import Grouping
from loadgen.schedule import Spacing, Split


class Experiment(msgspec.Struct, frozen=True, kw_only=True):
    """One run that the simulator is asked for. Equal experiments have equal results."""

    scenario: str
    """Name, or path of a TOML file."""
    policy: str
    seed: int = 1
    changes: tuple[tuple[str, Any], ...] = ()
    """Key → value over the scenario's, as `--set` takes them."""
    way: str = ""
    """How the policy is run where it is not simply in charge, as whoever runs the experiment understands it."""

    def question(self) -> "Scenario":
        """Return the scenario with everything that is asked. Raises InvalidSettingsError."""
        from bench.scenario import load_scenario  # noqa: PLC0415  a worker starts without it

        return load_scenario(self.scenario, {**dict(self.changes), "autoscaler.policy": self.policy, "seed": self.seed})

    def key(self, version: str) -> str:
        """Return what stands for the result as long as `version`, that of the code, and its scenario stay.

        And the code of the package that brings the policy, where it is not ours.
        """
        told = (version, package_version(self.policy), self.way, self.question())
        return sha256(msgspec.json.encode(told)).hexdigest()[:24]

    def __str__(self) -> str:
        changes = "".join(f", {key}={value}" for key, value in self.changes)
        way = f" ({self.way})" if self.way else ""
        return f"{self.scenario}, {self.policy}{way}, seed {self.seed}{changes}"


def package_version(policy: str) -> str:
    """Return a fingerprint of the code that a package's policy comes with; empty for ours and for unknown ones."""
    from autoscaler.policies.registry import GROUP, POLICIES  # noqa: PLC0415  as in `question`

    if policy in POLICIES:
        return ""  # to look for packages takes longer than all else that a key needs
    offer = next(iter(entry_points(group=GROUP, name=policy)), None)
    spec = find_spec(offer.module.partition(".")[0]) if offer else None
    if spec is None or spec.origin is None:
        return ""
    files = (path for folder in spec.submodule_search_locations or () for path in Path(folder).rglob("*.py"))
    digest = sha256()
    for path in sorted({Path(spec.origin), *files}):
        digest.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def experiment(scenario: str, policy: str, *, seed: int = 1, changes: Mapping[str, Any] | None = None) -> Experiment:
    """Return an experiment; the order in which changes are named makes no difference."""
    return Experiment(scenario=scenario, policy=policy, seed=seed, changes=_hashable(changes or {}))


def _hashable(changes: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Return the changes in the order of their keys."""
    return tuple((key, tuple(value) if isinstance(value, list) else value) for key, value in sorted(changes.items()))


def simulated(one: Experiment) -> SimulationResult:
    """Run the experiment. Raises InvalidSettingsError, or ValueError for what the simulator refuses."""
    from bench.simulation.run import run_scenario  # noqa: PLC0415  compiled code only where something is simulated

    return run_scenario(one.question(), keep_events=False)[1]


AT_HEARTBEATS: Final = (Delivery.EAGER, Delivery.COOPERATIVE_STICKY, Delivery.KIP848)
"""Deliveries in which members learn of a change at their next heartbeat, each at a time of its own."""


def random_parts(question: "Scenario") -> tuple[str, ...]:
    """Return what is drawn at random in this scenario, in words; none: every seed gives the same run."""
    world = question.simulation
    delivery = question.payment.runtime or question.payment.delivery
    drawn = {
        "split": (world.split or question.load.split) is Split.RANDOM,
        "spacing": question.load.spacing is Spacing.POISSON,
        "bursts": question.load.spacing is Spacing.BURST
        and (question.load.burst_phase_s == "random" or question.load.burst_jitter_s > 0),
        "keys": question.load.key_skew > 0 or question.load.grouping is not Grouping.EXPLICIT,
        "heartbeats": delivery in AT_HEARTBEATS and question.payment.heartbeat_s > 0,
        "start-up": isinstance(world.startup_s, str),
        "service times": world.distribution != "deterministic",
        "lost observations": world.observation_loss > 0,
    }
    return tuple(name for name, is_random in drawn.items() if is_random)


@dataclass(frozen=True, slots=True)
class World:
    """A scenario with what is set over it. Policies are compared within one world."""

    scenario: str
    changes: tuple[tuple[str, Any], ...] = ()

    @property
    def settings(self) -> tuple[str, ...]:
        """What is set, as `--set` takes it."""
        return tuple(f"{key}={value}" for key, value in self.changes)

    def experiments(self, policy: str, seeds: int) -> list[Experiment]:
        """Return an experiment for each seed from 1, or a single one where nothing is left to chance.

        Random phases are stratified: seed k of n has its ticks within the k-th n-th of the interval after the bursts,
        or the whole seconds, of the load. So a few seeds see all of it, whatever the spacing.
        """
        first = experiment(self.scenario, policy, seed=1, changes=dict(self.changes))
        question = first.question()
        if not self.random(policy):
            return [first]
        every = [msgspec.structs.replace(first, seed=seed) for seed in range(1, seeds + 1)]
        if not _phase_is_random(question):
            return every
        told = {key: value for key, value in self.changes if not key.endswith("burst_phase_s")}
        interval_s = question.autoscaler.decision_interval_s
        return [
            experiment(
                self.scenario,
                policy,
                seed=one.seed,
                changes={
                    **told,
                    "load.burst_phase_s": 0.0,
                    "autoscaler.tick_offset_s": _stratified(one.seed, seeds) * interval_s // 1e-6 / 1e6,
                },
            )
            for one in every
        ]

    def random(self, policy: str) -> tuple[str, ...]:
        """Return what the seeds change, in words."""
        question = experiment(self.scenario, policy, changes=dict(self.changes)).question()
        parts = random_parts(question)
        return parts if "bursts" in parts or not _phase_is_random(question) else ("phase", *parts)


def _phase_is_random(question: "Scenario") -> bool:
    return question.load.burst_phase_s == "random"


def _stratified(seed: int, seeds: int) -> float:
    """Return a share below 1, somewhere in the seed's own n-th."""
    return (seed - 1 + Random(seed).random()) / seeds


def world(scenario: str, changes: Mapping[str, Any] | None = None) -> World:
    """Return a world; the order in which changes are named makes no difference."""
    return World(scenario, _hashable(changes or {}))
