"""`tailpack bench bounce`: under load every replica is stopped and another started in its place, one by one."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.handover.outcome import BounceResult, Faults
from bench.handover.stretch import stretch
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, OverdueError, Setup, now_us
from tailpack.labs.outcome import outcome
from tailpack.labs.planned import PlannedSteps

SETTLE_S: Final = 3.0
QUIET_S: Final = 10.0
STEP_DEADLINE_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Course:
    """How many times each place in the group is refilled."""

    setup: Setup
    rounds: int
    latency_target_s: float
    began_s: float

    @property
    def bounces(self) -> int:
        """Replicas that are replaced, in all."""
        return self.rounds * self.setup.replicas


def run(course: Course, announce: Callable[[str, int], None]) -> BounceResult:
    """Carry it out. announce: hears of the phase or the figures so far, and of the bounces. Raises TailpackError."""
    journal, problem, interrupted, bounces = Journal(), "", False, 0
    quiet = bouncing = (0, 0)
    announce("starting", 0)
    with Lab(course.setup) as lab:
        try:
            lab.start_group()
            lab.start_load()
            lab.pump(until_s=time.monotonic() + SETTLE_S)
            quiet = lab.rest(QUIET_S)
            steps = PlannedSteps(lab, journal, seed=course.setup.seed, deadline_s=STEP_DEADLINE_S)
            began_us = now_us()
            for number in range(1, course.bounces + 1):
                _bounce(lab, steps, lab.plans.replicas[0])
                bouncing, bounces = (began_us, now_us()), number
                announce(journal.glance(), bounces)
        except OverdueError as overdue:
            problem = str(overdue)
        except KeyboardInterrupt:
            interrupted = True
        sent = lab.stop_load()
        evidence = lab.evidence(journal.steps, [], sent)
    first = evidence.served.first_completions()
    calm, during = (stretch(first, *one, latency_target_s=course.latency_target_s) for one in (quiet, bouncing))
    common = outcome(course.setup, sent, problem=problem, interrupted=interrupted, quick=False, began_s=course.began_s)
    return BounceResult(
        **msgspec.structs.asdict(common),
        bounces=bounces,
        latency_target_s=course.latency_target_s,
        late=during.late,
        quiet=calm,
        bouncing=during,
        faults=Faults.of(evidence),
    )


def _bounce(lab: Lab, steps: PlannedSteps, name: str) -> None:
    """SIGTERM; when it has ended, start another and give it as many partitions."""
    partitions = len(lab.plans.held_by(name))
    steps.terminate(name)
    steps.start(lab.start_replica(), partitions)
