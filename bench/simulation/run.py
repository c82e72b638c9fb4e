"""Simulate a scenario, and compute its figures by the measures of live runs."""

import time
from collections.abc import Callable
from itertools import pairwise

from autoscaler.jit import compiling_s, load_compiler
from autoscaler.model import Action
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario
from bench.simulation.build import packing_capacity, settings_of, true_service_rate
from bench.simulation.policy import policy_of
from bench.simulation.result import SimulationResult
from bench.simulation.sent import Sent, sent_by
from contracts.validation import InvalidSettingsError
from loadgen.schedule import Spacing
from report.measures import in_sla_share, packing_replica_minutes, percentile_us, replica_minutes


def run_scenario(
    scenario: Scenario,
    sent: Sent | None = None,
    *,
    keep_events: bool = True,
    passed: Callable[[int], None] | None = None,
) -> tuple[Run, SimulationResult]:
    """Simulate a scenario; return what happened and its figures. The time of compiling is not counted.

    sent: the events, if they are not simply the scenario's. keep_events: off, only latencies are kept.
    passed: called with the number of further events that the simulation has reached.
    Raises InvalidSettingsError for what cannot be simulated.
    """
    if scenario.stages:
        raise InvalidSettingsError([f"{scenario.name}: it has stages; `tailpack simulate` runs it"])
    load_compiler()
    began_s = _clock_s()
    sent = sent_by(scenario) if sent is None else sent
    packing_capacity(scenario, sent)  # a scenario without a bin is refused before it takes time
    policy = policy_of(scenario, sent)
    run = simulate(sent.workload(passed), policy, settings_of(scenario), keep_events=keep_events, clock=_clock_s)
    return run, analyse(scenario, sent, run, wall_s=_clock_s() - began_s)


def _clock_s() -> float:
    """Return seconds of a clock that stands still while this process compiles."""
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
        p50_s=_percentile_s(run, 0.5),
        p99_s=_percentile_s(run, 0.99),
        p999_s=_percentile_s(run, 0.999),
        max_s=_percentile_s(run, 1.0),
        replica_minutes=replica_minutes(run.requested, 0, sent.duration_s),
        priced_minutes=replica_minutes(run.paid, 0, sent.duration_s),
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


def _percentile_s(run: Run, percentile: float) -> float | None:
    return percentile_us(run.latency_us, percentile) / 1e6 if len(run.latency_us) else None
