"""Plans that follow one another faster than windows can be kept apart: random ones, and storms."""

import random
import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from bench.handover.evidence import Step
from tailpack.errors import TailpackError
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, now_us

INTERVAL_S: Final = (0.15, 0.27)
"""Between two random plans: 10,000 handovers then take about ten minutes."""
MOST_MOVED: Final = 6
"""Partitions that one random plan moves, at most."""
SLACK: Final = 2
"""Partitions that a replica may have above its fair share, so that none is overloaded."""
STORM_PLANS: Final = 40
STORM_S: Final = 10.0
CALM_S: Final = 2.0
"""After a storm."""
WINDOW_S: Final = 5.0
"""Later than this after its plan, a move that nobody superseded has not been carried out."""


class DenseSteps:
    """Writes plans at their time, whether or not the one before has been carried out."""

    def __init__(self, lab: Lab, journal: Journal, *, seed: int, deadline_s: float) -> None:
        if lab.setup.replicas < 2:
            raise TailpackError("--replicas must be at least 2: there is nobody to move a partition to")
        self._lab = lab
        self._journal = journal
        self._random = random.Random(seed)
        self._deadline_s = deadline_s
        self._pending: dict[int, tuple[str, int]] = {}
        """Partition → new owner and time of the plan, until the first event is seen there."""
        self.settled_s: float | None = None
        """From the last plan of the latest storm until the group reported it."""

    def random_plans(self) -> Iterator[None]:
        """Move 1 to 6 partitions with each plan, in one of three ways, for ever."""
        ways = {"scatter": self._scatter, "gather": self._gather, "swap": self._swap}
        while True:
            kind = self._random.choice(sorted(ways))
            self._write(kind, ways[kind](self._random.randint(1, MOST_MOVED)), self._random.uniform(*INTERVAL_S))
            yield

    def storms(self) -> Iterator[None]:
        """Write 40 plans in 10 s, each of which moves one partition, then wait for the last. Raises OverdueError."""
        while True:
            last_us = 0
            for _ in range(STORM_PLANS):
                last_us = self._write("storm", self._scatter(1), STORM_S / STORM_PLANS)
            self._lab.wait_for_plan(self._deadline_s)
            self.settled_s = (now_us() - last_us) / 1e6
            self._lab.pump(until_s=time.monotonic() + CALM_S)
            self._count_done()
            yield

    def _write(self, kind: str, changes: dict[int, str], interval_s: float) -> int:
        plans = self._lab.plans
        begin_s = time.monotonic()
        moves = plans.moves(changes)
        at_us = plans.write(plans.replicas, {**plans.assignment, **changes})
        self._pending |= {move.partition: (move.target, at_us) for move in moves}
        self._journal.steps.append(Step(kind, at_us, at_us + round(WINDOW_S * 1e6), moves))
        self._lab.pump(until_s=begin_s + interval_s)
        self._count_done()
        return at_us

    def _count_done(self) -> None:
        done = [
            number
            for number, (target, at_us) in self._pending.items()
            if self._lab.timeline.last_done_us(number, target) > at_us
        ]
        for number in done:
            del self._pending[number]
        self._journal.handovers += len(done)

    def _scatter(self, count: int) -> dict[int, str]:
        """Each of some random partitions goes to another replica."""
        changes: dict[int, str] = {}
        for number in self._random.sample(sorted(self._lab.plans.assignment), self._at_most(count)):
            if takers := self._takers(changes, number):
                changes[number] = self._random.choice(takers)
        return changes

    def _gather(self, count: int) -> dict[int, str]:
        """One replica takes from all others."""
        target = self._random.choice(self._lab.plans.replicas)
        changes: dict[int, str] = {}
        for number in self._random.sample(sorted(self._lab.plans.assignment), self._at_most(count)):
            if target in self._takers(changes, number):
                changes[number] = target
        return changes

    def _swap(self, count: int) -> dict[int, str]:
        """Pairs of partitions change places."""
        owners = self._lab.plans.assignment
        chosen = self._random.sample(sorted(owners), 2 * (self._at_most(count) // 2))
        pairs = zip(chosen[::2], chosen[1::2], strict=True)
        return {number: owners[other] for pair in pairs for number, other in (pair, pair[::-1])}

    def _takers(self, changes: dict[int, str], number: int) -> list[str]:
        """Replicas that may have partition `number` beside what `changes` gives them."""
        after = {**self._lab.plans.assignment, **changes}
        counts = Counter(after.values())
        most = -(-len(after) // len(self._lab.plans.replicas)) + SLACK
        return [name for name in self._lab.plans.replicas if name != after[number] and counts[name] < most]

    def _at_most(self, count: int) -> int:
        return min(count, len(self._lab.plans.assignment))
