"""The four experiments, each from the start of its group to its result. All raise ExperimentError.

announce hears of the phase or of what was last seen, and of how much is done: handovers, steps, plans, partitions.
"""

import itertools
import random
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from bench.handover import analyse
from bench.handover.evidence import Step
from bench.handover.experiment import Announce, Experiment, conduct
from bench.handover.outcomes import FailoverResult, GrowthResult, HandoverResult, ScaleResult
from bench.handover.setup import ExperimentError, Setup
from bench.handover.steps import PlannedSteps, UnplannedSteps
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.progress import Round
from contracts.topics import Topic, qualified

FIRST_QUIET_S: Final = 3.0
QUICK_STEPS_S: Final = 36.0
"""Quick form: no step begins later than this after the command, so that the whole ends within 50 s."""
SCALE_QUIET_S: Final = 5.0
SCALE_DEADLINE_S: Final = 30.0
GROWTH_QUIET_S: Final = 20.0
GROWTH_DEADLINE_S: Final = 120.0
ADMIN_DEADLINE_S: Final = 30.0


class Steps(StrEnum):
    """What is done to the group."""

    MIXED = "mixed"
    """Moves, starts, drains and stops in turn, each with a window of its own."""
    RANDOM = "random"
    """Random plans, several a second."""
    SLOW_EVENT = "slow-event"
    """A partition moves while another replica serves an event that takes a second."""


ENOUGH: Final = {Steps.MIXED: 200, Steps.RANDOM: 200, Steps.SLOW_EVENT: 20}
"""Handovers, where nobody says how many."""
QUICKLY: Final = {Steps.MIXED: 30, Steps.RANDOM: 100, Steps.SLOW_EVENT: 5}


def contradictions(steps: Steps, setup: Setup) -> list[str]:
    """Return a sentence for each reason why the group cannot take these steps."""
    found = []
    if steps is not Steps.MIXED and not setup.takes_plan:
        found.append(f"steps {steps} need a plan, and {setup.runtime} takes none; use mixed")
    if steps is Steps.SLOW_EVENT and setup.replicas < 3:
        found.append("steps slow-event need 3 replicas at least: one is slow, two others hand over")
    return found


def handover(
    setup: Setup, connection: Connection, announce: Announce, *, steps: Steps, enough: int
) -> tuple[HandoverResult, list[Round]]:
    """Hand so many partitions over under load; return the result, and what the replicas told of their rounds."""

    def act(experiment: Experiment) -> None:
        rounds = _begin(steps, experiment)
        experiment.rest(FIRST_QUIET_S)
        for _ in rounds:
            announce("", experiment.handovers)
            if experiment.handovers >= enough or _late(setup):
                break

    notes, evidence, outcome = conduct(setup, connection, announce, act)
    figures = analyse.handovers(evidence)
    return HandoverResult(**msgspec.structs.asdict(outcome), steps=steps, figures=figures), notes.reports.rounds


def failover(
    setup: Setup, connection: Connection, announce: Announce, *, known: int, sigterms: int, unknown: int
) -> FailoverResult:
    """Kill replicas, first some whose death nobody tells, then known ones and stops in turn; each is replaced."""

    def act(experiment: Experiment) -> None:
        planned = PlannedSteps(experiment)
        turns = itertools.zip_longest([analyse.KNOWN_DEATH] * known, [analyse.SIGTERM] * sigterms)
        ends = [analyse.UNKNOWN_DEATH] * unknown + [end for turn in turns for end in turn if end]
        for number, end in enumerate(ends, start=1):
            if number > 1:
                planned.start(experiment.start_replica(), partitions=2)
            if end == analyse.SIGTERM:
                planned.terminate(planned.fullest())
            else:
                planned.kill(end, planned.fullest(), known=end == analyse.KNOWN_DEATH)
            announce("", number)
            if _late(setup):
                break

    _, evidence, outcome = conduct(setup, connection, announce, act)
    return FailoverResult(**msgspec.structs.asdict(outcome), figures=analyse.failover(evidence))


def scale(setup: Setup, connection: Connection, announce: Announce, *, plans: int, moved: int) -> ScaleResult:
    """Let a large group carry out plans that move `moved` random partitions each; time them until the last arrived."""
    window_s = max(1.0, 2 * setup.partitions / setup.rate)  # so that each partition sees an event twice
    applied_us: list[int] = []
    pauses_us: list[int] = []

    def act(experiment: Experiment) -> None:
        chance, group, told = random.Random(setup.seed), experiment.plans, experiment.reports
        experiment.rest(SCALE_QUIET_S)
        for number in range(1, plans + 1):
            changes = {
                one: chance.choice([name for name in group.replicas if name != group.assignment[one]])
                for one in chance.sample(sorted(group.assignment), moved)
            }
            at_us, moves = group.write(changes)
            experiment.wait_for(
                lambda: sum(one.taken for one in told.rounds_of(group.epoch)) >= moved,
                f"plan {group.epoch} moves {moved} partitions",
                SCALE_DEADLINE_S,
            )
            experiment.pump(window_s)
            experiment.steps.append(Step(f"move {moved}", at_us, now_us(), moves))
            took = [one for one in told.rounds_of(group.epoch) if one.taken]
            applied_us.append(max(one.at_us for one in took) - at_us)
            pauses_us.extend(one.pause_us for one in took)
            announce(f"applied in {applied_us[-1] / 1e3:.0f} ms", number)

    _, evidence, outcome = conduct(setup, connection, announce, act)
    return ScaleResult(
        **msgspec.structs.asdict(outcome),
        plans=len(applied_us),
        moved=moved,
        applied_p50_s=analyse.rank_s(applied_us, 0.5),
        applied_max_s=analyse.rank_s(applied_us, 1.0),
        pause_p50_s=analyse.rank_s(pauses_us, 0.5),
        pause_max_s=analyse.rank_s(pauses_us, 1.0),
        figures=analyse.handovers(evidence),
    )


def growth(setup: Setup, connection: Connection, announce: Announce, *, partitions: int) -> GrowthResult:
    """Grow the topic by as many partitions as it began with, again and again, then give one replica all of it."""
    step = setup.partitions
    generations: list[int] = []
    """Of the group: before the growth, and after each change."""

    def act(experiment: Experiment) -> None:
        group, reports = experiment.plans, experiment.reports
        announce("quiet stretch before the growth", step)
        experiment.rest(GROWTH_QUIET_S)
        generations.append(reports.generation())
        for size in (*range(2 * step, partitions + 1, step), None):
            at_us, changes = now_us(), dict.fromkeys(group.assignment, group.replicas[0])
            if size:
                _create_partitions(experiment, size)
                changes = group.spread(range(size - step, size), group.replicas)
            group.write(changes)
            experiment.wait_for_plan(GROWTH_DEADLINE_S)
            experiment.steps.append(Step("growth" if size else "shrink", at_us, now_us(), ()))
            generations.append(reports.generation())
            announce(f"{size or 'one replica has all'}", size or partitions)

    notes, evidence, outcome = conduct(setup, connection, announce, act)
    grown = [one for one in notes.steps if one.kind == "growth"]
    stable_us = [one.until_us - one.at_us for one in grown]
    shrunk = notes.steps[len(grown) :]
    quiet = analyse.stretch(evidence, *(evidence.quiet[0] if evidence.quiet else (0, 0)))
    growing = analyse.stretch(evidence, *((grown[0].at_us, grown[-1].until_us) if grown else (0, 0)))
    return GrowthResult(
        **{**msgspec.structs.asdict(outcome), "partitions": step + step * len(grown)},
        partitions_before=step,
        step=step,
        steps=len(grown),
        stable_p50_s=analyse.rank_s(stable_us, 0.5),
        stable_max_s=analyse.rank_s(stable_us, 1.0),
        stable_after_last_s=stable_us[-1] / 1e6 if stable_us else None,
        rounds=generations[len(grown)] - generations[0] if grown else 0,
        shrink_s=(shrunk[0].until_us - shrunk[0].at_us) / 1e6 if shrunk else None,
        quiet=quiet,
        growing=growing,
        throughput_share=growing.throughput / quiet.throughput if quiet.throughput else 0.0,
        faults=analyse.faults(evidence),
    )


def _begin(steps: Steps, experiment: Experiment) -> Iterator[None]:
    if not experiment.setup.takes_plan:
        unplanned = UnplannedSteps(experiment)
        unplanned.settle()
        return unplanned.mixed()
    match steps:
        case Steps.MIXED:
            return PlannedSteps(experiment).mixed()
        case Steps.SLOW_EVENT:
            return PlannedSteps(experiment).slow_events()
        case Steps.RANDOM:
            return PlannedSteps(experiment).random_plans()


def _late(setup: Setup) -> bool:
    return setup.quick and time.monotonic() > setup.began_s + QUICK_STEPS_S


def _create_partitions(experiment: Experiment, total: int) -> None:
    """Raises ExperimentError when the broker refuses or does not answer."""
    topic = qualified(experiment.connection.namespace, Topic.PAYMENTS_REQUESTED)
    admin = AdminClient(experiment.connection.librdkafka() | {"log_level": "0"})
    (answer,) = admin.create_partitions([NewPartitions(topic, total)]).values()
    try:
        answer.result(ADMIN_DEADLINE_S)
    except (KafkaException, TimeoutError) as refused:
        raise ExperimentError(f"{topic} could not grow to {total} partitions: {refused}") from refused
