"""Steps of a group that takes a plan: partitions are moved by hand, one window after the other."""

import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from bench.handover.evidence import Move, Step
from bench.handover.windows import TAIL_US
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, OverdueError, now_us

CALM_S: Final = 0.4
"""After a process has started or ended, before the next step: its imports cost the machine a core."""
QUIET_S: Final = 0.6
"""In each round of steps: what latencies are like when nothing changes."""


class PlannedSteps:
    """Moves, starts, drains and stops, by the plan."""

    def __init__(self, lab: Lab, journal: Journal, *, seed: int, deadline_s: float) -> None:
        """deadline_s: how long a step may take."""
        self._lab = lab
        self._journal = journal
        self._random = random.Random(seed)
        self.deadline_s = deadline_s

    def rounds(self) -> Iterator[None]:
        """Take one step after the other, for ever. Raises OverdueError when one does not come to its end."""
        stop_by_plan = True
        while True:
            self.move(1)
            yield
            self.move(min(3, len(self._holders())))
            yield
            self._journal.quiet.append(self._lab.rest(QUIET_S))  # here, where no process starts or ends
            newcomer = self._lab.start_replica()
            self._lab.pump(until_s=time.monotonic() + CALM_S)
            self.start(newcomer, partitions=2)
            yield
            if stop_by_plan:
                self.drain(newcomer)
            else:
                self.terminate(self.fullest())
            stop_by_plan = not stop_by_plan
            yield
            self._lab.pump(until_s=time.monotonic() + CALM_S)

    def move(self, count: int) -> None:
        """One partition each of `count` replicas goes to the next of them; of a single one, to another replica."""
        holders = self._random.sample(self._holders(), count)
        others = [name for name in self._lab.plans.replicas if name not in holders]
        takers = [*holders[1:], holders[0]] if count > 1 else [self._random.choice(others)]
        changes = {
            self._random.choice(self._lab.plans.held_by(source)): target
            for source, target in zip(holders, takers, strict=True)
        }
        self.carry_out(f"move {count}", changes)

    def start(self, newcomer: str, partitions: int) -> None:
        """A warm replica gets partitions of those that have most."""
        changes: dict[int, str] = {}
        for _ in range(partitions):
            left = {name: set(self._lab.plans.held_by(name)) - set(changes) for name in self._lab.plans.replicas}
            fullest = max(left, key=lambda name: (len(left[name]), name))
            changes[self._random.choice(sorted(left[fullest]))] = newcomer
        self.carry_out("start", changes, replicas=(*self._lab.plans.replicas, newcomer))

    def drain(self, name: str) -> None:
        """A plan without this replica; when others serve its partitions its process is stopped."""
        staying = tuple(one for one in self._lab.plans.replicas if one != name)
        self.carry_out("drain", self._lab.plans.spread(self._lab.plans.held_by(name), staying), replicas=staying)
        self._stop(name)

    def terminate(self, name: str) -> None:
        """SIGTERM while it serves; nobody has planned it. Afterwards a plan confirms what the group made of it."""
        lab = self._lab
        mine = lab.plans.held_by(name)
        at_us = lab.replicas.terminate(name)
        overdue = self._await(
            lambda: all(self.left(number, name, at_us) for number in mine) and lab.replicas.gone(name),
            f"others serve partitions {mine} of {name}, and it ends",
        )
        self._close("sigterm", at_us, None, set(mine))
        if overdue:
            raise overdue
        self.confirm(tuple(one for one in lab.plans.replicas if one != name))

    def confirm(self, replicas: tuple[str, ...]) -> None:
        """Plan what is there already: the owners as they report themselves, else those seen last."""
        told = self._lab.reports.owners(self._lab.replicas.running)
        self._lab.plans.write(replicas, {**self._lab.timeline.owners(), **told})
        self._lab.wait_for_plan(self.deadline_s)

    def carry_out(
        self,
        kind: str,
        changes: Mapping[int, str],
        replicas: tuple[str, ...] | None = None,
        apart: tuple[int, ...] = (),
    ) -> None:
        """Write a plan with `changes`, wait for the new owners and for the end of the window; keep the step."""
        plans = self._lab.plans
        moves = plans.moves(changes)
        at_us = plans.write(replicas or plans.replicas, {**plans.assignment, **changes})
        overdue = self._await(
            lambda: all(self._lab.timeline.last_done_us(one.partition, one.target) > at_us for one in moves),
            f"{kind}: partitions {sorted(changes)} are served by their new owners",
        )
        self._close(kind, at_us, moves, {one.partition for one in moves}, apart)
        if overdue:
            raise overdue

    def _await(self, condition: Callable[[], bool], what: str) -> OverdueError | None:
        try:
            self._lab.wait_for(condition, what, self.deadline_s)
        except OverdueError as overdue:
            return overdue
        return None

    def _close(
        self, kind: str, at_us: int, moves: tuple[Move, ...] | None, partitions: set[int], apart: tuple[int, ...] = ()
    ) -> None:
        self._lab.pump(until_s=time.monotonic() + TAIL_US / 1e6)
        step = Step(kind, at_us, now_us(), moves, apart)
        self._journal.note(step, partitions, self._lab.timeline)

    def left(self, partition: int, source: str, at_us: int) -> bool:
        """Return whether another replica than `source` has finished an event of `partition` since."""
        others = (name for name in self._lab.replicas.running if name != source)
        return any(self._lab.timeline.last_done_us(partition, name) > at_us for name in others)

    def fullest(self) -> str:
        """Return a replica that has most partitions."""
        counts = {name: len(self._lab.plans.held_by(name)) for name in self._holders()}
        return self._random.choice([name for name, count in counts.items() if count == max(counts.values())])

    def _holders(self) -> list[str]:
        return sorted(set(self._lab.plans.assignment.values()))

    def _stop(self, name: str) -> None:
        self._lab.replicas.terminate(name)
        self._lab.wait_for(lambda: self._lab.replicas.gone(name), f"{name} ends after SIGTERM", self.deadline_s)
