"""Simulate the stages of a scenario one after the other, and measure each stage and the whole chain."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np

from autoscaler.jit import load_compiler
from autoscaler.policies.chain import chained_policies
from autoscaler.ports import Policy
from autoscaler.simulator.chain import end_to_end_us, next_workload
from autoscaler.simulator.run import Run, simulate
from bench.scenario import Scenario
from bench.simulation.run import RANKS, percentile_s, policy_config_of
from bench.simulation.sent_events import SentEvents, build_events, replica_minutes, settings_of
from contracts.settings import Target
from contracts.validation import InvalidSettingsError
from report.measures import in_sla_share


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
