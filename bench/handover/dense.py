"""Plans that follow one another faster than windows can be kept apart: random ones, and storms."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Final

from bench.handover.evidence import Step
from bench.handover.experiment import Experiment

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
    """Writes plans at their time, whether or not the one before has been carried out. Needs two replicas."""

    def __init__(self, group: Experiment) -> None:
        self._group = group
        self._plans = group.plans
        self._random = random.Random(group.setup.seed)
        self._pending: dict[int, tuple[str, int]] = {}
        """Partition → new owner and time of the plan, until the first event is seen there."""

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
            for _ in range(STORM_PLANS):
                self._write("storm", self._scatter(1), STORM_S / STORM_PLANS)
            self._group.wait_for_plan(self._group.setup.step_deadline_s)
            self._group.pump(CALM_S)
            self._count_done()
            yield

    def _write(self, kind: str, changes: dict[int, str], interval_s: float) -> None:
        at_us, moves = self._plans.write(changes)
        self._pending |= {move.partition: (move.target, at_us) for move in moves}
        self._group.steps.append(Step(kind, at_us, at_us + round(WINDOW_S * 1e6), moves))
        self._group.pump(interval_s)
        self._count_done()

    def _count_done(self) -> None:
        last_done_us = self._group.timeline.last_done_us
        done = [number for number, (target, at_us) in self._pending.items() if last_done_us(number, target) > at_us]
        for number in done:
            del self._pending[number]
        self._group.handovers += len(done)

    def _scatter(self, count: int) -> dict[int, str]:
        """Each of some random partitions goes to another replica."""
        changes: dict[int, str] = {}
        for number in self._some(count):
            if takers := self._takers(changes, number):
                changes[number] = self._random.choice(takers)
        return changes

    def _gather(self, count: int) -> dict[int, str]:
        """One replica takes from all others."""
        target = self._random.choice(self._plans.replicas)
        changes: dict[int, str] = {}
        for number in self._some(count):
            if target in self._takers(changes, number):
                changes[number] = target
        return changes

    def _swap(self, count: int) -> dict[int, str]:
        """Pairs of partitions change places."""
        owners, chosen = self._plans.assignment, self._some(count // 2 * 2)
        pairs = zip(chosen[::2], chosen[1::2], strict=False)
        return {number: owners[other] for pair in pairs for number, other in (pair, pair[::-1])}

    def _takers(self, changes: dict[int, str], number: int) -> list[str]:
        """Replicas that may have partition `number` beside what `changes` gives them."""
        after = {**self._plans.assignment, **changes}
        counts = Counter(after.values())
        most = -(-len(after) // len(self._plans.replicas)) + SLACK
        return [name for name in self._plans.replicas if name != after[number] and counts[name] < most]

    def _some(self, count: int) -> list[int]:
        partitions = sorted(self._plans.assignment)
        return self._random.sample(partitions, min(count, len(partitions)))
