"""Simulate the stages of a scenario one after the other, and measure each stage and the whole chain.

The output of a stage is the input of the next. No event flows upstream, so each stage is simulated to its end before
the next one begins. This is exact. A policy that uses reports from upstream reads them tick by tick
(autoscaler.policies.chain).
"""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

import msgspec
import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import load_compiler
from autoscaler.policies.chain import chained_policies
from autoscaler.ports import Policy
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.chance import Cause, chance_of
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario
from bench.simulation.run import RANKS, percentile_s, policy_config_of
from bench.simulation.sent_events import SentEvents, build_events, replica_minutes, settings_of
from contracts.settings import Target
from contracts.validation import InvalidSettingsError
from report.measures import in_sla_share

Numbers = NDArray[np.int64]


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one stage. Latencies in s count from an event's arrival at the stage; None: no events."""

    stage: str
    events: int
    in_sla: float
    """Share of events with a latency within the stage's share of the latency target (W)."""
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    peak_replicas: int
    plan_changes: int


class ChainResult(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a chain. An event is done when all events that it caused in later stages are done."""

    scenario: str
    coordinated: bool
    seed: int
    events: int
    in_sla: float
    """Share of events that were done within the latency target (W)."""
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    """Replica-minutes, summed over all stages."""
    stages: tuple[StageResult, ...]


def run_chain(scenario: Scenario, sent: SentEvents | None = None) -> tuple[list[Run], ChainResult]:
    """Simulate every stage; return the run of each stage, and the figures.

    sent: events that replace the scenario's. Raises InvalidSettingsError if the scenario cannot be simulated.
    """
    load_compiler()  # now, so that it is not part of the measured time
    sent = build_events(scenario) if sent is None else sent
    scenarios = [scenario, *map(scenario.at_stage, range(len(scenario.stages)))]
    names = ["payment", *(stage.name for stage in scenario.stages)]
    workload, cause = sent.workload(), np.arange(sent.events)
    runs: list[Run] = []
    causes = [cause]
    for number, (stage_scenario, policy) in enumerate(zip(scenarios, _policies(scenarios), strict=True)):
        if number:
            stage = scenario.stages[number - 1]
            workload, cause = next_workload(
                runs[-1], cause, branching=stage.branching, partitions=stage.partitions, seed=stage_scenario.seed
            )
            causes.append(cause)
        runs.append(simulate(workload, policy, settings_of(stage_scenario)))
    took_us = end_to_end_us(runs, causes)
    stages = [
        StageResult(
            stage=name,
            events=len(run.latency_us),
            in_sla=in_sla_share(run.latency_us, share * scenario.target.latency_target_s),
            p999_s=percentile_s(run.latency_us, 0.999),
            max_s=percentile_s(run.latency_us, 1.0),
            replica_minutes=replica_minutes(run.requested, 0, sent.duration_s),
            peak_replicas=max(count for _, count in run.requested),
            plan_changes=len(run.changes),
        )
        for name, run, share in zip(names, runs, scenario.shares(), strict=True)
    ]
    found = ChainResult(
        scenario=scenario.name,
        coordinated=scenario.chain.coordinated,
        seed=scenario.seed,
        events=len(took_us),
        in_sla=in_sla_share(took_us, scenario.target.latency_target_s),
        **{name: percentile_s(took_us, RANKS[name]) for name in ("p99_s", "p999_s", "max_s")},
        replica_minutes=sum(stage.replica_minutes for stage in stages),
        stages=tuple(stages),
    )
    return runs, found


def _policies(scenarios: Sequence[Scenario]) -> list[Policy]:
    """Return the policy of each stage, with its share of the latency target and of late events."""
    chain = scenarios[0]
    late = (1 - chain.target.percentile) / len(scenarios)
    configs = [
        replace(
            policy_config_of(stage_scenario, stage_scenario.policy),
            target=Target(latency_target_s=share * chain.target.latency_target_s, percentile=1 - late),
        )
        for stage_scenario, share in zip(scenarios, chain.shares(), strict=True)
    ]
    try:
        return chained_policies(configs) if chain.chain.coordinated else [config.policy() for config in configs]
    except ValueError as error:
        raise InvalidSettingsError([f"{chain.name}: {error}"]) from error


def next_workload(
    run: Run, cause: Numbers, *, branching: float, partitions: int, seed: int
) -> tuple[Workload, Numbers]:
    """Return the workload of the next stage, and for each of its events the event of the first stage that caused it.

    Each finished event causes ⌊branching⌋ events, and one more with probability branching − ⌊branching⌋. Each of them
    goes to a random partition: topics are keyed by order, and a hash of orders is uniform.
    cause: event of the first stage for each event of `run`. The workload ends with the run or its last event, if later.
    """
    chance = chance_of(Cause.CHAIN, seed)
    each = int(branching) + (chance.random(len(cause)) < branching - int(branching))
    events = np.repeat(np.arange(len(cause)), each)
    partition = chance.integers(partitions, size=len(events), dtype=np.int32)
    times_us = run.events.done_us[events]
    order = np.argsort(times_us, kind="stable")
    ends_s = max(run.duration_s, ceil((int(times_us.max(initial=0)) + 1) / 1e6))
    arrivals = Arrivals(times_us[order], partition[order])
    return Workload.whole(arrivals, partitions=partitions, duration_s=ends_s), cause[events[order]]


def end_to_end_us(runs: Sequence[Run], causes: Sequence[Numbers]) -> Numbers:
    """Return for each event of the first stage the time until all events that it caused were finished, µs.

    causes: for each stage and event, the event of the first stage that caused it.
    """
    first = runs[0].events
    done_us = first.done_us.copy()
    for run, cause in zip(runs[1:], causes[1:], strict=True):
        np.maximum.at(done_us, cause, run.events.done_us)
    return done_us - first.intended_us
