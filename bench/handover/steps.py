"""The steps of an experiment. A group that does not follow plans can only start and stop replicas."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from autoscaler.live.publisher import complete_plan
from autoscaler.model import Plan
from bench.handover.figures import KNOWN_DEATH, SIGTERM
from bench.handover.group import SETTLE_S, ServedGroup
from contracts.plan import Eviction

AFTER_PROCESS_CHANGE_S: Final = 0.4
"""Time to wait after a process has started or ended, because that occupies a core, s."""
QUIET_S: Final = 0.6
"""Length of the quiet period in each cycle of steps."""
SETTLE_DEADLINE_S: Final = 30.0


class PlannedSteps:
    """Steps for a group that follows plans. Each step raises WaitTimeoutError if it does not end in time."""

    def __init__(self, group: ServedGroup) -> None:
        self._group, self._observer = group, group.observer
        self._random = random.Random(group.setup.seed)

    def mixed(self) -> Iterator[None]:
        """Take steps in an endless loop; yield after each one."""
        for stop_by_plan in itertools.cycle((True, False)):
            self.move(1)
            yield
            self.move(min(3, len(self._owners())))
            yield
            self._group.rest(QUIET_S)  # here, because no process starts or ends now
            newcomer = self._group.start_warm()
            self._group.read_for(AFTER_PROCESS_CHANGE_S)
            self.start(newcomer)
            yield
            if stop_by_plan:
                self.drain(newcomer)
            else:
                self.end(SIGTERM, self.fullest())
            yield
            self._group.read_for(AFTER_PROCESS_CHANGE_S)

    def move(self, count: int) -> None:
        """Let `count` random replicas, as a ring, each pass a partition to the next; 1: pass one to any other."""
        sources = self._random.sample(self._owners(), count)
        others = [name for name in self._group.replicas if name not in sources]
        targets = [*sources[1:], sources[0]] if count > 1 else [self._random.choice(others)]
        changes = {
            self._random.choice(self._group.partitions_of(source)): target
            for source, target in zip(sources, targets, strict=True)
        }
        self._carry_out(f"move {count}", changes)

    def start(self, newcomer: str) -> None:
        """Move one partition of each of the two fullest replicas to a warm replica."""
        fullest = sorted(self._owners(), key=lambda name: len(self._group.partitions_of(name)))[-2:]
        changes = {self._random.choice(self._group.partitions_of(name)): newcomer for name in fullest}
        self._carry_out("start", changes, (*self._group.replicas, newcomer))

    def drain(self, name: str) -> None:
        """Write a plan without this replica, and stop its process when other replicas serve its partitions."""
        self._carry_out("drain", *self._without(name))
        self._group.end(name)
        self._group.wait_for(lambda: self._group.has_ended(name), f"{name} ends after SIGTERM")

    def end(self, kind: str, name: str) -> None:
        """End a serving replica by SIGTERM or SIGKILL, without a plan before.

        After a known death, a plan evicts the replica at once. After an unknown death, the replica's session times
        out, the group chooses new owners, and a plan then confirms these owners.
        """
        partitions, report = self._group.partitions_of(name), self._observer.reports[name]
        changes, staying = self._without(name)
        at_us, moves = self._group.end(name, kill=kind != SIGTERM), None
        if kind == KNOWN_DEATH:
            evicted = Eviction(replica=name, member_id=report.member_id, incarnation=report.incarnation)
            _, moves = self._group.write_plan(changes, staying, (evicted,))
        done = lambda: self._taken_over(partitions, at_us) and self._group.has_ended(name)  # noqa: E731
        self._group.carry_out(kind, at_us, done, f"others serve partitions {partitions} of {name}, and it ends", moves)
        self._group.handovers += len(partitions)
        if kind != KNOWN_DEATH:
            chosen = self._observer.owners() | self._observer.reported_owners(self._group.running)
            self._group.write_plan(chosen, staying)
            self._group.wait_for_plan()

    def fullest(self) -> str:
        """Return a replica with the most partitions."""
        return max(self._owners(), key=lambda name: (len(self._group.partitions_of(name)), self._random.random()))

    def _carry_out(self, kind: str, changes: Mapping[int, str], replicas: tuple[str, ...] = ()) -> None:
        at_us, moves = self._group.write_plan(changes, replicas)
        self._group.carry_out(
            kind,
            at_us,
            lambda: all(self._observer.last_done_us(*move) > at_us for move in moves.items()),
            f"partitions {sorted(moves)} are served by their new owners",
            moves,
        )
        self._group.handovers += len(moves)

    def _without(self, name: str) -> tuple[Mapping[int, str], tuple[str, ...]]:
        staying = tuple(replica for replica in self._group.replicas if replica != name)
        before, partitions = Plan(staying, self._group.assignment), range(self._group.setup.partitions)
        return complete_plan(before, staying, partitions).assignment or {}, staying

    def _taken_over(self, partitions: list[int], at_us: int) -> bool:
        last_done_us, running = self._observer.last_done_us, self._group.running
        return all(any(last_done_us(number, name) > at_us for name in running) for number in partitions)

    def _owners(self) -> list[str]:
        return sorted(set(self._group.assignment.values()))


class UnplannedSteps:
    """Steps for a group that does not follow plans: stop the oldest replica, start another one, and so on."""

    def __init__(self, group: ServedGroup) -> None:
        self._group, self._observer = group, group.observer

    def mixed(self) -> Iterator[None]:
        """Wait until all replicas have equal shares, then take steps in an endless loop; yield after each one."""
        self._group.wait_for(self._is_balanced, "every replica serves its share", SETTLE_DEADLINE_S)
        self._group.read_for(SETTLE_S)
        while True:
            self._terminate(next(iter(self._group.running)))
            yield
            self._start()
            yield
            self._group.rest(QUIET_S)

    def _start(self) -> None:
        before, newcomer, first_us = self._observer.owners(), self._group.start(), self._observer.first_us
        self._group.wait_for(lambda: newcomer in first_us, f"{newcomer} connects")
        self._carry_out("start", first_us[newcomer], before, self._is_balanced, f"{newcomer} serves its share")

    def _terminate(self, name: str) -> None:
        before, at_us = self._observer.owners(), self._group.end(name)
        done = lambda: self._group.has_ended(name) and self._is_balanced()  # noqa: E731
        self._carry_out(SIGTERM, at_us, before, done, f"others serve the partitions of {name}, and it ends")

    def _carry_out(self, kind: str, at_us: int, before: dict[int, str], done: Callable[[], bool], what: str) -> None:
        self._group.carry_out(kind, at_us, done, what)
        self._group.handovers += sum(before.get(number) != owner for number, owner in self._observer.owners().items())

    def _is_balanced(self) -> bool:
        running, counts = self._group.running, Counter(self._observer.owners().values())
        share = self._group.setup.partitions // len(running)
        return set(counts) <= set(running) and all(counts[name] >= share for name in running)
