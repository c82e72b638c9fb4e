"""`tailpack bench failover`: replicas die and are stopped under load; what that costs the events."""

import itertools
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from bench.handover.evidence import Move, Step
from bench.handover.failover import KNOWN, UNKNOWN, judge_failover
from bench.handover.outcome import FailoverResult
from bench.handover.windows import TAIL_US
from contracts.plan import Eviction
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, OverdueError, Setup, now_us
from tailpack.labs.outcome import outcome
from tailpack.labs.planned import PlannedSteps

SETTLE_S: Final = 2.0
QUICK_STEPS_S: Final = 36.0
"""Quick form: no step begins later than this after the command, so that the whole ends within 50 s."""
QUICK_STEP_DEADLINE_S: Final = 11.0
STEP_DEADLINE_S: Final = 60.0


@dataclass(frozen=True, kw_only=True)
class Course:
    """How often which end."""

    setup: Setup
    known: int
    sigterms: int
    unknown: int
    quick: bool = False
    began_s: float = 0.0
    """Monotonic time of the command."""

    @property
    def steps(self) -> int:
        """All of them."""
        return self.known + self.sigterms + self.unknown


class Deaths:
    """Ends replicas, each with partitions of its own, and puts another in its place."""

    def __init__(self, lab: Lab, journal: Journal, course: Course) -> None:
        self._lab = lab
        self._journal = journal
        self._course = course
        self._deadline_s = QUICK_STEP_DEADLINE_S if course.quick else STEP_DEADLINE_S
        self._steps = PlannedSteps(lab, journal, seed=course.setup.seed, deadline_s=self._deadline_s)

    def run(self) -> Iterator[None]:
        """Take the steps: unknown deaths, then known ones and stops in turn. Raises OverdueError."""
        course = self._course
        turns = itertools.zip_longest([self.known_death] * course.known, [self.sigterm] * course.sigterms)
        steps = [self.unknown_death] * course.unknown + [step for turn in turns for step in turn if step]
        for number, step in enumerate(steps, start=1):
            step()
            yield
            if number < len(steps):
                self._replace()

    def known_death(self) -> None:
        """SIGKILL; the end of the process is seen, and the plan says so."""
        lab = self._lab
        victim = self._victim()
        report = lab.reports.newest[victim]
        staying = tuple(name for name in lab.plans.replicas if name != victim)
        changes = lab.plans.spread(lab.plans.held_by(victim), staying)
        moves = lab.plans.moves(changes)
        at_us = lab.replicas.kill(victim)
        evicted = Eviction(replica=victim, member_id=report.member_id, incarnation=report.incarnation)
        lab.plans.write(staying, {**lab.plans.assignment, **changes}, (evicted,), reason=f"{victim} died")
        self._await_others(KNOWN, at_us, victim, moves)

    def unknown_death(self) -> None:
        """SIGKILL, and nobody tells: the session times out, the group deals the partitions out by itself."""
        victim = self._victim()
        mine = tuple(Move(number, victim, "") for number in self._lab.plans.held_by(victim))
        at_us = self._lab.replicas.kill(victim)
        self._await_others(UNKNOWN, at_us, victim, mine, planned=False)
        self._steps.confirm(tuple(name for name in self._lab.plans.replicas if name != victim))

    def sigterm(self) -> None:
        """SIGTERM of a replica that holds partitions."""
        self._steps.terminate(self._victim())

    def _await_others(
        self, kind: str, at_us: int, victim: str, moves: tuple[Move, ...], *, planned: bool = True
    ) -> None:
        overdue = None
        try:
            self._lab.wait_for(
                lambda: all(self._steps.left(move.partition, victim, at_us) for move in moves),
                f"{kind}: others serve the partitions of {victim}",
                self._deadline_s,
            )
        except OverdueError as late:
            overdue = late
        self._lab.pump(until_s=time.monotonic() + TAIL_US / 1e6)
        step = Step(kind, at_us, now_us(), moves if planned else None)
        self._journal.note(step, {move.partition for move in moves}, self._lab.timeline)
        if overdue:
            raise overdue

    def _replace(self) -> None:
        newcomer = self._lab.start_replica()
        self._steps.start(newcomer, partitions=2)

    def _victim(self) -> str:
        return self._steps.fullest()


def run(course: Course, announce: Callable[[str, int], None]) -> FailoverResult:
    """Carry it out. announce: hears of the phase or the figures so far, and of the steps done. Raises TailpackError."""
    began_s = course.began_s or time.monotonic()
    journal, problem, interrupted, taken = Journal(), "", False, 0
    announce("starting", 0)
    with Lab(course.setup) as lab:
        try:
            lab.start_group()
            lab.start_load()
            lab.pump(until_s=time.monotonic() + SETTLE_S)
            for taken, _ in enumerate(Deaths(lab, journal, course).run(), start=1):
                announce(journal.glance(), taken)
                if course.quick and time.monotonic() > began_s + QUICK_STEPS_S:
                    break
        except OverdueError as overdue:
            problem = str(overdue)
        except KeyboardInterrupt:
            interrupted = True
        announce("the rest is finished", taken)
        sent = lab.stop_load(5.0 if interrupted or course.quick else 20.0)
        evidence = lab.evidence(journal.steps, journal.quiet, sent)
    common = outcome(course.setup, sent, problem=problem, interrupted=interrupted, quick=course.quick, began_s=began_s)
    return FailoverResult(**msgspec.structs.asdict(common), figures=judge_failover(evidence))
