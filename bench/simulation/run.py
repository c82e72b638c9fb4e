"""Simulate a scenario, and compute its figures by the measures of live runs."""

import time
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final

import msgspec

from autoscaler.jit import compiling_s, load_compiler
from autoscaler.model import Action
from autoscaler.optimum.optimum import MAX_PARTITIONS
from autoscaler.policies.registry import PolicyConfig, make_policy
from autoscaler.ports import Policy
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario
from bench.simulation.optimum import find_optimum
from bench.simulation.sent import CLAIRVOYANT, Sent, protocol_of, sent_by, settings_of, true_service_rate
from contracts.rebalance_protocol import PLAN_PROTOCOLS
from contracts.validation import InvalidSettingsError
from loadgen.schedule import Spacing
from report.measures import IntArray, in_sla_share, packing_replica_minutes, percentile_us, replica_minutes

RANKS: Final = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999, "max_s": 1.0}
BIN_SHARE: Final = 0.85
"""Share of the events that a replica serves within the target: 85 of 100, as CLOSER 2024 really packed."""


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one run, named as in the live result. Latencies in seconds, nearest rank; None without events."""

    scenario: str
    policy: str
    seed: int
    events: int
    in_sla: float
    """Share of events within the latency target; lost ones are late."""
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    packing_replica_minutes: float
    """Least replica-minutes that hold each second's own events (report.measures.packing_replica_minutes)."""
    optimum_replica_minutes: float | None = None
    """Cost of the cheapest schedule of counts and owners for these events (autoscaler.optimum); None: not computed."""
    optimum_lower: float | None = None
    """Cost below which no schedule meets the SLO; None: not computed."""
    kept: bool | None = None
    """Whether the run meets the SLO; None: not computed."""
    scale_ups: int
    scale_downs: int
    reassignments: int
    replicas_added: int = 0
    """Over all scale-ups: what a paper may count as ups."""
    replicas_removed: int = 0
    """Over all scale-downs, likewise."""
    moved_partitions: int
    """Changes of owner, summed over all decisions."""
    wall_s: float
    """Duration of the simulation on this machine, policy included."""
    policy_s: float
    """Part of it that the policy took."""
    lost: int = 0
    duplicates: int = 0
    phase_s: float = 0.0
    """From the first burst, or a whole second of the workload, to the next tick."""

    @property
    def regret(self) -> float | None:
        """Cost above the optimum, as a share of it; None where that is not known, or the run does not meet the SLO."""
        best = self.optimum_replica_minutes
        return self.replica_minutes / best - 1 if best and self.optimum_lower is not None and self.kept else None

    @property
    def plan_changes(self) -> int:
        """Decisions that changed the count or an owner."""
        return self.scale_ups + self.scale_downs + self.reassignments


def run_scenario(
    scenario: Scenario, sent: Sent | None = None, *, keep_events: bool = True
) -> tuple[Run, SimulationResult]:
    """Simulate a scenario; return what happened and its figures. The time of compiling is not counted.

    sent: the events, if they are not simply the scenario's. keep_events: off, only latencies are kept.
    Raises InvalidSettingsError for what cannot be simulated.
    """
    if scenario.stages:
        raise InvalidSettingsError([f"{scenario.name}: it has stages; `tailpack simulate` runs it"])
    load_compiler()
    began_s = _clock_s()
    sent = sent_by(scenario) if sent is None else sent
    settings = settings_of(scenario)
    policy = policy_of(scenario, sent)
    run = simulate(sent.workload(), policy, settings, keep_events=keep_events, clock=_clock_s)
    return run, analyse(scenario, sent, run, wall_s=_clock_s() - began_s)


def _clock_s() -> float:
    return time.perf_counter() - compiling_s()


def analyse(scenario: Scenario, sent: Sent, run: Run, *, wall_s: float) -> SimulationResult:
    """Return the figures of `run`. wall_s: how long it took."""
    target = scenario.target
    lost = sent.events - len(run.latency_us)
    taken = [change.action for change in run.changes]
    counts = [scenario.autoscaler.initial_replicas, *(change.replicas for change in run.changes)]
    steps = [after - before for before, after in pairwise(counts)]
    began_s = sent.bursts.phase_s(sent.seed) if sent.spacing is Spacing.BURST else 0.0
    in_sla = in_sla_share(run.latency_us, target.latency_target_s, lost)
    return SimulationResult(
        scenario=scenario.name,
        policy=run.policy,
        seed=scenario.seed,
        events=sent.events,
        in_sla=in_sla,
        kept=in_sla >= target.percentile,
        **{name: percentile_s(run.latency_us, rank) for name, rank in RANKS.items()},
        replica_minutes=replica_minutes(run.requested, 0, sent.duration_s),
        packing_replica_minutes=packing_replica_minutes(
            sent.table(),
            service_rate=true_service_rate(scenario),
            latency_target_s=target.latency_target_s,
            bursts=sent.spacing is Spacing.BURST,
        ),
        scale_ups=taken.count(Action.UP),
        scale_downs=taken.count(Action.DOWN),
        reassignments=taken.count(Action.REASSIGN),
        replicas_added=sum(step for step in steps if step > 0),
        replicas_removed=-sum(step for step in steps if step < 0),
        moved_partitions=sum(change.moved for change in run.changes),
        wall_s=wall_s,
        policy_s=run.policy_s,
        lost=lost,
        duplicates=run.duplicates,
        phase_s=round((scenario.autoscaler.tick_offset_s - began_s) % scenario.autoscaler.decision_interval_s, 6),
    )


def percentile_s(took_us: IntArray, percentile: float) -> float | None:
    """Return a percentile of µs in seconds, nearest rank; None of nothing."""
    return percentile_us(took_us, percentile) / 1e6 if len(took_us) else None


def policy_of(scenario: Scenario, sent: Sent) -> Policy:
    """Return the scenario's policy inside its guards, as a live run has it. Raises InvalidSettingsError.

    sent: the events, from which options of the reference policies follow. A clairvoyant has no guards.
    """
    try:
        options = told(scenario, sent) | scenario.policy
        if scenario.autoscaler.policy == CLAIRVOYANT:
            return make_policy(CLAIRVOYANT, options=options)
        return asked_of(scenario, options).policy()
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong


def asked_of(scenario: Scenario, options: Mapping[str, Any]) -> PolicyConfig:
    """Return the scenario's policy as it is asked for, with these options."""
    return PolicyConfig(
        scenario.autoscaler,
        scenario.target,
        scenario.guards,
        options,
        counts_only=protocol_of(scenario) not in PLAN_PROTOCOLS,
        fallback=False,  # a policy that fails shall be seen to fail here
    )


def told(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    """Return options of the scenario's policy that follow from its world and its load; none for most policies."""
    policy, within_s = scenario.autoscaler.policy, min(1.0, scenario.target.latency_target_s)
    one_bin = {"bin_events_per_s": round(BIN_SHARE * within_s * true_service_rate(scenario), 9)}
    if policy == "paper-optimal":
        return one_bin
    if policy == "overprovisioned":
        return one_bin | {"peak_rates": tuple(map(float, sent.table().max(axis=0)))}
    if policy != CLAIRVOYANT:
        return {}
    if sent.partitions > MAX_PARTITIONS:
        raise ValueError(f"clairvoyant plans up to {MAX_PARTITIONS} partitions, the scenario has {sent.partitions}")
    return {"schedule": find_optimum(scenario, sent)[1]}
