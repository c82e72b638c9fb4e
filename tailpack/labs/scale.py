"""`tailpack bench scale`: many replicas, many partitions, light load, and plans that move a lot at once."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.handover.evidence import Step
from bench.handover.judge import judge
from bench.handover.outcome import ScaleResult
from bench.handover.rounds import Applied, applied
from tailpack.labs.columns import rank_s
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, OverdueError, Setup, now_us
from tailpack.labs.outcome import outcome

SETTLE_S: Final = 5.0
QUIET_S: Final = 5.0
DEADLINE_S: Final = 30.0


@dataclass(frozen=True, kw_only=True)
class Course:
    """How often, and how much at once."""

    setup: Setup
    plans: int
    moved: int
    began_s: float

    @property
    def window_s(self) -> float:
        """Long enough for each partition to see an event twice."""
        return max(1.0, 2 * self.setup.partitions / self.setup.rate)


def run(course: Course, announce: Callable[[str, int], None]) -> ScaleResult:
    """Carry it out. announce: hears of the phase or the figures so far, and of the plans done. Raises TailpackError."""
    journal, problem, interrupted, startup_s = Journal(), "", False, 0.0
    done: list[tuple[int, Applied]] = []
    announce("starting the replicas", 0)
    with Lab(course.setup) as lab:
        try:
            startup_s = lab.start_group()
            lab.start_load()
            lab.pump(until_s=time.monotonic() + SETTLE_S)
            journal.quiet.append(lab.rest(QUIET_S))
            chance = random.Random(course.setup.seed)
            for number in range(1, course.plans + 1):
                done.append(_move(lab, journal, course, chance))
                announce(f"applied in {1e3 * _applied_s(done)[-1]:.0f} ms", number)
        except OverdueError as overdue:
            problem = str(overdue)
        except KeyboardInterrupt:
            interrupted = True
        announce("the rest is finished", len(done))
        sent = lab.stop_load()
        evidence = lab.evidence(journal.steps, journal.quiet, sent)
    pauses_s = [pause_us / 1e6 for _, one in done for pause_us in one.pauses_us]
    common = outcome(course.setup, sent, problem=problem, interrupted=interrupted, quick=False, began_s=course.began_s)
    return ScaleResult(
        **msgspec.structs.asdict(common),
        plans=len(done),
        moved=course.moved,
        startup_s=startup_s,
        applied_p50_s=rank_s(_applied_s(done), 0.5),
        applied_max_s=rank_s(_applied_s(done), 1.0),
        rounds_max=max((one.rounds for _, one in done), default=0),
        pause_p50_s=rank_s(pauses_s, 0.5),
        pause_max_s=rank_s(pauses_s, 1.0),
        figures=judge(evidence, service_time_s=course.setup.service_time_s),
    )


def _move(lab: Lab, journal: Journal, course: Course, chance: random.Random) -> tuple[int, Applied]:
    """Move random partitions to random other replicas; return the plan's time and what became of it."""
    plans = lab.plans
    changes = {
        number: chance.choice([name for name in plans.replicas if name != plans.assignment[number]])
        for number in chance.sample(sorted(plans.assignment), course.moved)
    }
    moves = plans.moves(changes)
    at_us = plans.write(plans.replicas, {**plans.assignment, **changes})
    lab.wait_for(
        lambda: applied(lab.reports.rounds, plans.epoch).taken >= len(moves),
        f"plan {plans.epoch} moves {len(moves)} partitions",
        DEADLINE_S,
    )
    lab.pump(until_s=time.monotonic() + course.window_s)
    journal.note(Step(f"move {course.moved}", at_us, now_us(), moves), {one.partition for one in moves}, lab.timeline)
    return at_us, applied(lab.reports.rounds, plans.epoch)


def _applied_s(done: list[tuple[int, Applied]]) -> list[float]:
    return [(one.done_us - at_us) / 1e6 for at_us, one in done]
