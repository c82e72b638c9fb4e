"""A scenario with stages, simulated: each stage after the one before it, and measured from end to end."""

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
from bench.simulation.run import RANKS, asked_of, percentile_s
from bench.simulation.sent import Sent, sent_by, settings_of
from contracts.settings import Target
from contracts.validation import InvalidSettingsError
from report.measures import in_sla_share, replica_minutes


class StageResult(msgspec.Struct, frozen=True, kw_only=True):
    """One stage by itself: latencies from an event's arrival there, in seconds, nearest rank; None without events."""

    stage: str
    events: int
    in_sla: float
    """Share of events that took no longer here than the stage's own share of W."""
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    peak_replicas: int
    plan_changes: int


class ChainResult(msgspec.Struct, frozen=True, kw_only=True):
    """A whole chain. An event is done when all that it caused is done; latencies as in StageResult."""

    scenario: str
    coordinated: bool
    seed: int
    events: int
    in_sla: float
    """Share of events that were done within W."""
    p99_s: float | None
    p999_s: float | None
    max_s: float | None
    replica_minutes: float
    """Sum over all stages."""
    stages: tuple[StageResult, ...]


def run_chain(scenario: Scenario, sent: Sent | None = None) -> tuple[list[Run], ChainResult]:
    """Simulate every stage; return the run of each, and the figures.

    sent: the events, where they are not simply the scenario's. Raises InvalidSettingsError for what cannot be
    simulated.
    """
    load_compiler()  # before the first run, which would pay for it
    sent = sent_by(scenario) if sent is None else sent
    questions = [scenario, *map(scenario.at_stage, range(len(scenario.stages)))]
    names = ["payment", *(stage.name for stage in scenario.stages)]
    workload, cause = sent.workload(), np.arange(sent.events)
    runs: list[Run] = []
    causes = [cause]
    for number, (question, policy) in enumerate(zip(questions, _policies(questions), strict=True)):
        if number:
            stage = scenario.stages[number - 1]
            workload, cause = next_workload(
                runs[-1], cause, branching=stage.branching, partitions=stage.partitions, seed=question.seed
            )
            causes.append(cause)
        runs.append(simulate(workload, policy, settings_of(question)))
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
        replica_minutes=sum(one.replica_minutes for one in stages),
        stages=tuple(stages),
    )
    return runs, found


def _policies(questions: Sequence[Scenario]) -> list[Policy]:
    """Return the policy of each stage: its share of W and an n-th of the late events are its own, or add up as one.

    Raises InvalidSettingsError.
    """
    whole = questions[0]
    late = (1 - whole.target.percentile) / len(questions)
    asked = [
        replace(
            asked_of(one, one.policy),
            target=Target(latency_target_s=share * whole.target.latency_target_s, percentile=1 - late),
        )
        for one, share in zip(questions, whole.shares(), strict=True)
    ]
    try:
        return chained_policies(asked) if whole.chain.coordinated else [one.policy() for one in asked]
    except ValueError as wrong:
        raise InvalidSettingsError([f"{whole.name}: {wrong}"]) from wrong
