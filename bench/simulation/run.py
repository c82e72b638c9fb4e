"""Simulate a scenario, and compute its figures as they are defined for live runs."""

import time
from collections.abc import Mapping
from math import ceil
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.jit import compiling_s, load_compiler
from autoscaler.model import Action
from autoscaler.optimum.optimum import MAX_PARTITIONS
from autoscaler.policies.registry import PolicyConfig, make_policy
from autoscaler.ports import Policy
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario
from bench.simulation import sent_events
from bench.simulation.optimum import find_optimum
from bench.simulation.sent_events import CLAIRVOYANT, SentEvents, build_events, protocol_of, settings_of
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol
from contracts.validation import InvalidSettingsError
from loadgen.schedule import Spacing
from report.measures import IntArray, in_sla_share, per_second_packing, percentile_us

RANKS: Final = {"p50_s": 0.5, "p99_s": 0.99, "p999_s": 0.999, "max_s": 1.0}
BIN_SHARE: Final = 0.85
"""Size of a bin of the reference policies, as a share of the events that a replica serves in time (CLOSER 2024)."""


class SimulationResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one simulated run, named as in a live result. Latencies are None without events."""

    scenario: str
    policy: str
    seed: int
    events: int
    in_sla: float
    """Share of events within the latency target; lost events count as late."""
    in_sla_after_surge: float
    """The same share of the events after the first surge (`first_surge_end_s`)."""
    p50_s: float | None
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    packing_replica_minutes: float
    """Minimum replica-minutes if each second's events are packed alone (report.measures.per_second_packing)."""
    optimum_replica_minutes: float | None = None
    """Cost of the cheapest schedule for these events that was found (autoscaler.optimum); None: not computed."""
    optimum_lower: float | None = None
    """Lower bound on the cost of any schedule that meets the SLO; None: not computed."""
    kept: bool | None = None
    """Whether the run meets the SLO; None: not computed."""
    scale_ups: int
    scale_downs: int
    reassignments: int
    moved_partitions: int
    """Partitions that changed their owner, summed over all decisions."""
    wall_s: float
    """Duration of the simulation on this machine, policy included."""
    policy_s: float
    """Time spent in the policy; `wall_s` includes it."""
    lost: int = 0

    @property
    def regret(self) -> float | None:
        """Cost divided by that of the optimum, minus 1; None: the optimum is unknown, or the SLO is not met."""
        best = self.optimum_replica_minutes
        return self.replica_minutes / best - 1 if best and self.optimum_lower is not None and self.kept else None

    @property
    def plan_changes(self) -> int:
        """Number of decisions that changed the replica count or an owner."""
        return self.scale_ups + self.scale_downs + self.reassignments


def run_scenario(
    scenario: Scenario, sent: SentEvents | None = None, *, keep_events: bool = True
) -> tuple[Run, SimulationResult]:
    """Simulate a scenario; return the run and its figures. `wall_s` excludes compilation.

    sent: events that replace the scenario's. keep_events: whether the run keeps its events; false: only latencies.
    Raises InvalidSettingsError if the scenario cannot be simulated.
    """
    if scenario.stages:
        raise InvalidSettingsError([f"{scenario.name}: has stages; use `tailpack simulate`"])
    load_compiler()
    began_s = _clock_s()
    sent = build_events(scenario) if sent is None else sent
    settings = settings_of(scenario)
    policy = policy_of(scenario, sent)
    run = simulate(sent.workload(), policy, settings, keep_events=keep_events, clock=_clock_s)
    return run, analyse(scenario, sent, run, wall_s=_clock_s() - began_s)


def _clock_s() -> float:
    return time.perf_counter() - compiling_s()


def analyse(scenario: Scenario, sent: SentEvents, run: Run, *, wall_s: float) -> SimulationResult:
    """Return the figures of `run`. wall_s: duration of the simulation."""
    target = scenario.target
    lost = sent.events - len(run.latency_us)
    actions = [change.action for change in run.changes]
    bursts, rate = sent.spacing is Spacing.BURST, sent_events.true_service_rate(scenario)
    table, target_s = sent.table(), target.latency_target_s
    packed = per_second_packing(table, service_rate=rate, latency_target_s=target_s, bursts=bursts)
    in_sla = in_sla_share(run.latency_us, target_s, lost)
    past = table[: first_surge_end_s(scenario, packed)].sum()
    return SimulationResult(
        scenario=scenario.name,
        policy=run.policy,
        seed=scenario.seed,
        events=sent.events,
        in_sla=in_sla,
        in_sla_after_surge=in_sla_share(run.latency_us[past:], target_s, lost),
        kept=in_sla >= target.percentile,
        **{name: percentile_s(run.latency_us, rank) for name, rank in RANKS.items()},
        replica_minutes=sent_events.replica_minutes(run.requested, 0, sent.duration_s),
        packing_replica_minutes=int(packed.sum()) / 60,
        scale_ups=actions.count(Action.UP),
        scale_downs=actions.count(Action.DOWN),
        reassignments=actions.count(Action.REASSIGN),
        moved_partitions=sum(change.moved for change in run.changes),
        wall_s=wall_s,
        policy_s=run.policy_s,
        lost=lost,
    )


def first_surge_end_s(scenario: Scenario, packed: IntArray) -> int:
    """Return the end of the first surge in whole seconds; 0 if the replicas of the start are enough for every second.

    The first surge begins in the first second whose events need more replicas than the run starts with. No policy can
    have them earlier than after a decision interval, a start and a rebalance. The surge lasts twice this time, because
    the new replicas then serve what has waited. packed: replicas that each second needs (`per_second_packing`).
    """
    over = np.flatnonzero(packed > scenario.autoscaler.initial_replicas)
    settings = settings_of(scenario)
    added_s = settings.decision_interval_s + settings.policy_startup_s + settings.rebalance.model_rebalance_time_s
    return ceil(over[0] + 2 * added_s) if len(over) else 0


def percentile_s(values_us: IntArray, percentile: float) -> float | None:
    """Return a percentile in seconds, nearest rank; None without values."""
    return percentile_us(values_us, percentile) / 1e6 if len(values_us) else None


def policy_of(scenario: Scenario, sent: SentEvents) -> Policy:
    """Return the scenario's policy with its guards, as in a live run. Raises InvalidSettingsError.

    sent: the events, from which options of the reference policies are derived. The clairvoyant policy has no guards.
    """
    try:
        options = derived_options(scenario, sent) | scenario.policy
        if scenario.autoscaler.policy == CLAIRVOYANT:
            return make_policy(CLAIRVOYANT, options=options)
        return policy_config_of(scenario, options).policy()
    except ValueError as error:
        raise InvalidSettingsError([f"{scenario.name}: {error}"]) from error


def policy_config_of(scenario: Scenario, options: Mapping[str, Any]) -> PolicyConfig:
    """Return the configuration of the scenario's policy with the given options."""
    return PolicyConfig(
        scenario.autoscaler,
        scenario.target,
        scenario.guards,
        options,
        counts_only=protocol_of(scenario) in (*RUNTIMES, RebalanceProtocol.SHARE),
        fallback=False,  # a failing policy must raise here
    )


def derived_options(scenario: Scenario, sent: SentEvents) -> dict[str, Any]:
    """Return the options that a reference policy gets from scenario and load; empty for other policies."""
    policy, within_s = scenario.autoscaler.policy, min(1.0, scenario.target.latency_target_s)
    one_bin = {"bin_events_per_s": round(BIN_SHARE * within_s * sent_events.true_service_rate(scenario), 9)}
    if policy == "paper-optimal":
        return one_bin
    if policy == "overprovisioned":
        return one_bin | {"peak_rates": tuple(map(float, sent.table().max(axis=0)))}
    if policy != CLAIRVOYANT:
        return {}
    if sent.partitions > MAX_PARTITIONS:
        raise ValueError(f"clairvoyant supports up to {MAX_PARTITIONS} partitions, the scenario has {sent.partitions}")
    return {"schedule": find_optimum(scenario, sent)[1]}
