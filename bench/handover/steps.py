"""The steps of an experiment: by plan, where it takes one, or by starting and stopping replicas alone."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from autoscaler.live.publisher import extend_plan
from autoscaler.model import Plan
from bench.handover.figures import KNOWN_DEATH, SIGTERM
from bench.handover.group import SETTLE_S, ServedGroup
from contracts.plan import Eviction

CALM_S: Final = 0.4
"""After a process has started or ended, before the next step: its imports cost the machine a core."""
QUIET_S: Final = 0.6
"""In each round of steps: latencies without a change."""
SETTLE_DEADLINE_S: Final = 30.0


class PlannedSteps:
    """Moves, starts, drains and stops, by the plan. Each raises WaitTimeoutError when it does not end in time."""

    def __init__(self, group: ServedGroup) -> None:
        self._group, self._seen = group, group.seen
        self._random = random.Random(group.setup.seed)

    def mixed(self) -> Iterator[None]:
        """Take one step after the other, for ever."""
        for stop_by_plan in itertools.cycle((True, False)):
            self.move(1)
            yield
            self.move(min(3, len(self._holders())))
            yield
            self._group.rest(QUIET_S)  # here, where no process starts or ends
            newcomer = self._group.start_warm()
            self._group.pump(CALM_S)
            self.start(newcomer)
            yield
            if stop_by_plan:
                self.drain(newcomer)
            else:
                self.end(SIGTERM, self.fullest())
            yield
            self._group.pump(CALM_S)

    def move(self, count: int) -> None:
        """One partition each of `count` replicas goes to the next of them; of a single one, to another replica."""
        holders = self._random.sample(self._holders(), count)
        others = [name for name in self._group.replicas if name not in holders]
        takers = [*holders[1:], holders[0]] if count > 1 else [self._random.choice(others)]
        changes = {
            self._random.choice(self._group.held_by(source)): target
            for source, target in zip(holders, takers, strict=True)
        }
        self._carry_out(f"move {count}", changes)

    def start(self, newcomer: str) -> None:
        """A warm replica gets one partition of each of the two that have most."""
        fullest = sorted(self._holders(), key=lambda name: len(self._group.held_by(name)))[-2:]
        changes = {self._random.choice(self._group.held_by(name)): newcomer for name in fullest}
        self._carry_out("start", changes, (*self._group.replicas, newcomer))

    def drain(self, name: str) -> None:
        """Plan without this replica; its process is stopped when others serve its partitions."""
        self._carry_out("drain", *self._without(name))
        self._group.end(name)
        self._group.wait_for(lambda: self._group.gone(name), f"{name} ends after SIGTERM")

    def end(self, kind: str, name: str) -> None:
        """End a replica that serves, without a plan before: by SIGTERM, or by SIGKILL.

        A known death is written into the plan as an eviction; after an unknown one the session has to time out. A plan
        then confirms the owners that the group has chosen.
        """
        mine, report, (changes, staying) = self._group.held_by(name), self._seen.reports[name], self._without(name)
        at_us, moves = self._group.end(name, kill=kind != SIGTERM), None
        if kind == KNOWN_DEATH:
            evicted = Eviction(replica=name, member_id=report.member_id, incarnation=report.incarnation)
            _, moves = self._group.write_plan(changes, staying, (evicted,))
        done = lambda: self._taken_over(mine, at_us) and self._group.gone(name)  # noqa: E731
        self._group.carry_out(kind, at_us, done, f"others serve partitions {mine} of {name}, and it ends", moves)
        self._group.handovers += len(mine)
        if kind != KNOWN_DEATH:
            chosen = self._seen.owners() | self._seen.reported_owners(self._group.running)
            self._group.write_plan(chosen, staying)
            self._group.wait_for_plan()

    def fullest(self) -> str:
        """Return a replica that has most partitions."""
        return max(self._holders(), key=lambda name: (len(self._group.held_by(name)), self._random.random()))

    def _carry_out(self, kind: str, changes: Mapping[int, str], replicas: tuple[str, ...] = ()) -> None:
        at_us, moves = self._group.write_plan(changes, replicas)
        self._group.carry_out(
            kind,
            at_us,
            lambda: all(self._seen.last_done_us(*move) > at_us for move in moves.items()),
            f"partitions {sorted(moves)} are served by their new owners",
            moves,
        )
        self._group.handovers += len(moves)

    def _without(self, name: str) -> tuple[Mapping[int, str], tuple[str, ...]]:
        """Return the owners and the replicas once others have the partitions of `name`."""
        staying = tuple(one for one in self._group.replicas if one != name)
        kept = {partition: owner for partition, owner in self._group.assignment.items() if owner != name}
        return extend_plan(Plan(staying, kept), self._group.setup.partitions, {}).assignment or {}, staying

    def _taken_over(self, partitions: list[int], at_us: int) -> bool:
        last_done_us, running = self._seen.last_done_us, self._group.running
        return all(any(last_done_us(number, name) > at_us for name in running) for number in partitions)

    def _holders(self) -> list[str]:
        return sorted(set(self._group.assignment.values()))


class UnplannedSteps:
    """For a group that takes no plan: the oldest replica is stopped, then one started; owners show what moved."""

    def __init__(self, group: ServedGroup) -> None:
        self._group, self._seen = group, group.seen

    def mixed(self) -> Iterator[None]:
        """Wait until the replicas have equal shares, then take one step after the other, for ever."""
        self._group.wait_for(self._is_balanced, "every replica serves its share", SETTLE_DEADLINE_S)
        self._group.pump(SETTLE_S)
        while True:
            self._terminate(next(iter(self._group.running)))
            yield
            self._start()
            yield
            self._group.rest(QUIET_S)

    def _start(self) -> None:
        before, newcomer, first_us = self._seen.owners(), self._group.start(), self._seen.first_us
        self._group.wait_for(lambda: newcomer in first_us, f"{newcomer} connects")
        self._carry_out("start", first_us[newcomer], before, self._is_balanced, f"{newcomer} serves its share")

    def _terminate(self, name: str) -> None:
        before, at_us = self._seen.owners(), self._group.end(name)
        done = lambda: self._group.gone(name) and self._is_balanced()  # noqa: E731
        self._carry_out(SIGTERM, at_us, before, done, f"others serve the partitions of {name}, and it ends")

    def _carry_out(self, kind: str, at_us: int, before: dict[int, str], done: Callable[[], bool], what: str) -> None:
        self._group.carry_out(kind, at_us, done, what)
        self._group.handovers += sum(before.get(number) != owner for number, owner in self._seen.owners().items())

    def _is_balanced(self) -> bool:
        running, counts = self._group.running, Counter(self._seen.owners().values())
        share = self._group.setup.partitions // len(running)
        return set(counts) <= set(running) and all(counts[one] >= share for one in running)
