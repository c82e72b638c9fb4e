"""The two experiments, each from the start of its group to its result. All raise BenchError.

announce hears of the phase or of what was last seen, and of how much is done: handovers or ends. start: what starts
replicas; None: they are processes.
"""

import itertools
import time
from collections.abc import Iterator
from enum import StrEnum
from typing import Final

import msgspec

from bench.handover import analyse
from bench.handover.experiment import Announce, Experiment, Start, conduct
from bench.handover.outcomes import FailoverResult, HandoverResult
from bench.handover.setup import PROCESSES, Setup
from bench.handover.steps import PlannedSteps, UnplannedSteps
from contracts.connection import Connection

FIRST_QUIET_S: Final = 3.0
QUICK_STEPS_S: Final = 36.0
"""Quick form: no step begins later than this after the command, so that the whole ends within 50 s."""


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
    if setup.launcher != PROCESSES and not setup.takes_plan:
        found.append(f"as pods replicas are ours, not {setup.runtime}'s")
    if steps is Steps.SLOW_EVENT and setup.replicas < 3:
        found.append("steps slow-event need 3 replicas at least: one is slow, two others hand over")
    return found


def handover(
    setup: Setup, connection: Connection, announce: Announce, start: Start | None = None, *, steps: Steps, enough: int
) -> HandoverResult:
    """Hand so many partitions over under load; return the result."""

    def act(experiment: Experiment) -> None:
        rounds = _begin(steps, experiment)
        experiment.rest(FIRST_QUIET_S)
        for _ in rounds:
            announce("", experiment.handovers)
            if experiment.handovers >= enough or _late(setup):
                break

    _, evidence, outcome = conduct(setup, connection, announce, act, start)
    figures = analyse.handovers(evidence)
    return HandoverResult(**msgspec.structs.asdict(outcome), steps=steps, figures=figures)


def failover(
    setup: Setup,
    connection: Connection,
    announce: Announce,
    start: Start | None = None,
    *,
    known: int,
    sigterms: int,
    unknown: int,
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

    _, evidence, outcome = conduct(setup, connection, announce, act, start)
    return FailoverResult(**msgspec.structs.asdict(outcome), figures=analyse.failover(evidence))


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
