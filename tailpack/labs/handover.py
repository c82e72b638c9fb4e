"""`tailpack bench handover`: the experiment from start to figures."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec

from bench.handover.judge import judge
from bench.handover.outcome import HandoverResult
from contracts.progress import Round
from tailpack.errors import TailpackError
from tailpack.labs.dense import DenseSteps
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, OverdueError, Setup
from tailpack.labs.outcome import outcome
from tailpack.labs.planned import PlannedSteps
from tailpack.labs.slow_event import SlowEventSteps
from tailpack.labs.unplanned import UnplannedSteps

FIRST_QUIET_S: Final = 3.0
STEP_DEADLINE_S: Final = 60.0
SETTLE_S: Final = 2.0
"""After the load has begun, before anything is measured: clients fetch metadata, the broker compiles."""
QUICK_STEPS_S: Final = 34.0
"""Quick form: no step begins later than this after the command …"""
QUICK_STEP_DEADLINE_S: Final = 9.0
"""… and none may take longer than this, so that the whole ends within 50 s."""


class Steps(StrEnum):
    """What is done to the group."""

    MIXED = "mixed"
    """Moves, starts, drains and stops in turn, each with a window of its own."""
    RANDOM = "random"
    """Random plans, several a second."""
    STORM = "storm"
    """40 plans in 10 s, each of which moves one partition; the group has to end with the last."""
    SLOW_EVENT = "slow-event"
    """A partition moves while another replica serves an event that takes a second."""

    @classmethod
    def named(cls, name: str) -> "Steps":
        """Return it. Raises TailpackError."""
        try:
            return cls(name)
        except ValueError:
            raise TailpackError(f"--steps {name!r} is unknown; known are {', '.join(cls)}") from None


ENOUGH: Final = {Steps.MIXED: 200, Steps.RANDOM: 200, Steps.STORM: 40, Steps.SLOW_EVENT: 20}
"""Handovers, where nobody says how many."""
QUICKLY: Final = {Steps.MIXED: 30, Steps.RANDOM: 100, Steps.STORM: 40, Steps.SLOW_EVENT: 5}


@dataclass(frozen=True, kw_only=True)
class Course:
    """What an experiment does, and when it has done enough. Raises TailpackError where that cannot be."""

    setup: Setup
    handovers: int
    steps: Steps = Steps.MIXED
    quick: bool = False
    began_s: float = 0.0
    """Monotonic time of the command."""
    rounds: list[Round] = field(default_factory=list)
    """What replicas tell of their rounds; filled as it is carried out."""

    def __post_init__(self) -> None:
        if self.steps is not Steps.MIXED and not self.setup.runtime.takes_plan:
            raise TailpackError(
                f"--steps {self.steps} needs a plan, and {self.setup.runtime.name} takes none; use mixed"
            )
        if self.steps is Steps.SLOW_EVENT and self.setup.replicas < 3:
            raise TailpackError("--steps slow-event needs --replicas 3 at least: one is slow, two others hand over")


def run(course: Course, announce: Callable[[str, int], None]) -> HandoverResult:
    """Carry it out. announce: hears of the phase or the figures so far, and of the handovers done.

    Ctrl-C ends the steps; what was measured until then is judged. Raises TailpackError.
    """
    began_s = course.began_s or time.monotonic()
    journal, problem, interrupted = Journal(), "", False
    announce("starting", 0)
    with Lab(course.setup) as lab:
        try:
            lab.start_group()
            lab.start_load()
            if not course.setup.runtime.takes_plan:
                UnplannedSteps(lab, journal, deadline_s=STEP_DEADLINE_S).settle()
            lab.pump(until_s=time.monotonic() + SETTLE_S)
            journal.quiet.append(lab.rest(FIRST_QUIET_S))
            for _ in _rounds(course, lab, journal):
                announce(journal.glance(), journal.handovers)
                if journal.handovers >= course.handovers or (
                    course.quick and time.monotonic() > began_s + QUICK_STEPS_S
                ):
                    break
        except OverdueError as overdue:
            problem = str(overdue)
        except KeyboardInterrupt:
            interrupted = True
        announce("the rest is finished", journal.handovers)
        sent = lab.stop_load(5.0 if interrupted or course.quick else 20.0)
        evidence = lab.evidence(journal.steps, journal.quiet, sent)
        course.rounds.extend(one for _, one in lab.reports.rounds)
    common = outcome(course.setup, sent, problem=problem, interrupted=interrupted, quick=course.quick, began_s=began_s)
    figures = judge(evidence, service_time_s=course.setup.service_time_s)
    return HandoverResult(**msgspec.structs.asdict(common), steps=course.steps, figures=figures)


def _rounds(course: Course, lab: Lab, journal: Journal) -> Iterator[None]:
    deadline_s = QUICK_STEP_DEADLINE_S if course.quick else STEP_DEADLINE_S
    seed = course.setup.seed
    if not course.setup.runtime.takes_plan:
        return UnplannedSteps(lab, journal, deadline_s=deadline_s).rounds()
    match course.steps:
        case Steps.MIXED:
            return PlannedSteps(lab, journal, seed=seed, deadline_s=deadline_s).rounds()
        case Steps.SLOW_EVENT:
            return SlowEventSteps(lab, journal, seed=seed, deadline_s=deadline_s).rounds()
        case Steps.RANDOM:
            return DenseSteps(lab, journal, seed=seed, deadline_s=deadline_s).random_plans()
        case Steps.STORM:
            return DenseSteps(lab, journal, seed=seed, deadline_s=deadline_s).storms()
