"""What is done to a group: by plan, where it takes one, or by starting and stopping replicas alone."""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from bench.handover.analyse import SIGTERM
from bench.handover.evidence import Step
from bench.handover.experiment import SETTLE_S, Experiment
from contracts.plan import Eviction

CALM_S: Final = 0.4
"""After a process has started or ended, before the next step: its imports cost the machine a core."""
QUIET_S: Final = 0.6
"""In each round of steps: what latencies are like when nothing changes."""
IN_FLIGHT_S: Final = 0.1
"""From the slow event's send to the plan: it is being served by then."""
RECOVERY_S: Final = 1.0
"""The slow replica works off what waited behind the event."""
INTERVAL_S: Final = (0.15, 0.27)
"""Between two random plans: 10,000 handovers then take about ten minutes."""
MOST_MOVED: Final = 6
"""Partitions that one random plan moves, at most."""
SLACK: Final = 2
"""Partitions that a replica may have above its fair share, so that none is overloaded."""
SETTLE_DEADLINE_S: Final = 30.0
WINDOW_S: Final = 5.0
"""Later than this after its plan, a random move that nobody superseded has not been carried out."""


class PlannedSteps:
    """Moves, starts, drains and stops, by the plan. Each raises OverdueError when it does not come to its end."""

    def __init__(self, group: Experiment) -> None:
        self._group = group
        self._plans = group.plans
        self._random = random.Random(group.setup.seed)
        self._pending: dict[int, tuple[str, int]] = {}
        """Of random plans: partition → new owner and time of the plan, until the first event is seen there."""

    def mixed(self) -> Iterator[None]:
        """Take one step after the other, for ever."""
        stop_by_plan = True
        while True:
            self.move(1)
            yield
            self.move(min(3, len(self._holders())))
            yield
            self._group.rest(QUIET_S)  # here, where no process starts or ends
            newcomer = self._group.start_replica()
            self._group.pump(CALM_S)
            self.start(newcomer, partitions=2)
            yield
            if stop_by_plan:
                self.drain(newcomer)
            else:
                self.terminate(self.fullest())
            stop_by_plan = not stop_by_plan
            yield
            self._group.pump(CALM_S)

    def slow_events(self) -> Iterator[None]:
        """Move a partition while another replica serves an event that takes a second, for ever."""
        while True:
            slow, source = self._random.sample(self._holders(), 2)
            target = self._random.choice([name for name in self._plans.replicas if name not in {slow, source}])
            behind_it = self._plans.held_by(slow)
            self._group.send_slow(self._random.choice(behind_it))
            self._group.pump(IN_FLIGHT_S)
            moved = self._random.choice(self._plans.held_by(source))
            self._carry_out("slow event elsewhere", {moved: target}, apart=tuple(behind_it))
            yield
            self._group.pump(RECOVERY_S)
            self._group.rest(QUIET_S)

    def random_plans(self) -> Iterator[None]:
        """Move 1 to 6 partitions with each plan, in one of three ways, for ever, whether or not the last was done."""
        ways = {
            "scatter": lambda count: self._scatter(count, self._plans.replicas),
            "gather": lambda count: self._scatter(count, [self._random.choice(self._plans.replicas)]),
            "swap": self._swap,
        }
        last_done_us = self._group.timeline.last_done_us
        while True:
            kind = self._random.choice(sorted(ways))
            at_us, moves = self._plans.write(ways[kind](self._random.randint(1, MOST_MOVED)))
            self._pending |= {move.partition: (move.target, at_us) for move in moves}
            self._group.steps.append(Step(kind, at_us, at_us + round(WINDOW_S * 1e6), moves))
            self._group.pump(self._random.uniform(*INTERVAL_S))
            done = [one for one, (target, since_us) in self._pending.items() if last_done_us(one, target) > since_us]
            for number in done:
                del self._pending[number]
            self._group.handovers += len(done)
            yield

    def move(self, count: int) -> None:
        """One partition each of `count` replicas goes to the next of them; of a single one, to another replica."""
        holders = self._random.sample(self._holders(), count)
        others = [name for name in self._plans.replicas if name not in holders]
        takers = [*holders[1:], holders[0]] if count > 1 else [self._random.choice(others)]
        changes = {
            self._random.choice(self._plans.held_by(source)): target
            for source, target in zip(holders, takers, strict=True)
        }
        self._carry_out(f"move {count}", changes)

    def start(self, newcomer: str, partitions: int) -> None:
        """A warm replica gets partitions of those that have most."""
        changes: dict[int, str] = {}
        for _ in range(partitions):
            left = {name: set(self._plans.held_by(name)) - set(changes) for name in self._plans.replicas}
            fullest = max(left, key=lambda name: (len(left[name]), name))
            changes[self._random.choice(sorted(left[fullest]))] = newcomer
        self._carry_out("start", changes, replicas=(*self._plans.replicas, newcomer))

    def drain(self, name: str) -> None:
        """A plan without this replica; when others serve its partitions its process is stopped."""
        self._carry_out("drain", *self._without(name))
        self._group.replicas.terminate(name)
        self._group.wait_for(
            lambda: self._group.replicas.gone(name),
            f"{name} ends after SIGTERM",
            self._group.setup.step_deadline_s,
        )

    def terminate(self, name: str) -> None:
        """SIGTERM while it serves; nobody has planned it. Afterwards a plan confirms what the group made of it."""
        mine, at_us = self._plans.held_by(name), self._group.replicas.terminate(name)
        self._group.carry_out(
            SIGTERM,
            at_us,
            lambda: self._taken_over(mine, at_us) and self._group.replicas.gone(name),
            f"others serve partitions {mine} of {name}, and it ends",
        )
        self._group.handovers += len(mine)
        self._confirm_without(name)

    def kill(self, kind: str, name: str, *, known: bool) -> None:
        """SIGKILL. Known: the end of the process is seen, and the plan says so; else the session has to time out."""
        mine, report = self._plans.held_by(name), self._group.reports.newest[name]
        changes, staying = self._without(name)
        at_us, moves = self._group.replicas.kill(name, known=known), None
        if known:
            evicted = Eviction(replica=name, member_id=report.member_id, incarnation=report.incarnation)
            _, moves = self._plans.write(changes, staying, (evicted,))
        self._group.carry_out(
            kind, at_us, lambda: self._taken_over(mine, at_us), f"others serve the partitions of {name}", moves=moves
        )
        if not known:
            self._confirm_without(name)

    def fullest(self) -> str:
        """Return a replica that has most partitions."""
        counts = {name: len(self._plans.held_by(name)) for name in self._holders()}
        return self._random.choice([name for name, count in counts.items() if count == max(counts.values())])

    def _carry_out(
        self,
        kind: str,
        changes: Mapping[int, str],
        replicas: tuple[str, ...] | None = None,
        apart: tuple[int, ...] = (),
    ) -> None:
        at_us, moves = self._plans.write(changes, replicas)
        last_done_us = self._group.timeline.last_done_us
        self._group.carry_out(
            kind,
            at_us,
            lambda: all(last_done_us(one.partition, one.target) > at_us for one in moves),
            f"partitions {sorted(changes)} are served by their new owners",
            moves=moves,
            apart=apart,
        )
        self._group.handovers += len(moves)

    def _confirm_without(self, name: str) -> None:
        """Plan what is there already: the owners as they report themselves, else those seen last."""
        told = self._group.reports.owners(self._group.replicas.running)
        _, staying = self._without(name)
        self._plans.write({**self._group.timeline.owners(), **told}, staying)
        self._group.wait_for_plan(self._group.setup.step_deadline_s)

    def _without(self, name: str) -> tuple[dict[int, str], tuple[str, ...]]:
        """Return who takes the partitions of `name`, and all replicas but this one."""
        staying = tuple(one for one in self._plans.replicas if one != name)
        return self._plans.spread(self._plans.held_by(name), staying), staying

    def _taken_over(self, partitions: list[int], at_us: int) -> bool:
        """Tell whether replicas that run have finished an event of each of these partitions since."""
        last_done_us, running = self._group.timeline.last_done_us, self._group.replicas.running
        return all(any(last_done_us(number, name) > at_us for name in running) for number in partitions)

    def _holders(self) -> list[str]:
        return sorted(set(self._plans.assignment.values()))

    def _scatter(self, count: int, among: Sequence[str]) -> dict[int, str]:
        """Each of some random partitions goes to another replica, one of these, so that none is overloaded."""
        changes: dict[int, str] = {}
        for number in self._some(count):
            after = {**self._plans.assignment, **changes}
            counts, most = Counter(after.values()), -(-len(after) // len(self._plans.replicas)) + SLACK
            if takers := [name for name in among if name != after[number] and counts[name] < most]:
                changes[number] = self._random.choice(takers)
        return changes

    def _swap(self, count: int) -> dict[int, str]:
        """Pairs of partitions change places."""
        owners, chosen = self._plans.assignment, self._some(count // 2 * 2)
        pairs = zip(chosen[::2], chosen[1::2], strict=False)
        return {number: owners[other] for pair in pairs for number, other in (pair, pair[::-1])}

    def _some(self, count: int) -> list[int]:
        partitions = sorted(self._plans.assignment)
        return self._random.sample(partitions, min(count, len(partitions)))


class UnplannedSteps:
    """For a group that takes no plan: the oldest replica is stopped, then one started; owners seen tell what moved."""

    def __init__(self, group: Experiment) -> None:
        self._group = group

    def settle(self) -> None:
        """Wait until the replicas that were started together have shared the partitions out. Raises OverdueError."""
        self._group.wait_for(self._is_balanced, "every replica serves its share", SETTLE_DEADLINE_S)
        self._group.pump(SETTLE_S)

    def mixed(self) -> Iterator[None]:
        """Take one step after the other, for ever. Raises OverdueError when one does not come to its end."""
        while True:
            self._terminate(self._group.replicas.running[0])
            yield
            self._start()
            yield
            self._group.rest(QUIET_S)

    def _start(self) -> None:
        """Start a replica and wait until it serves its share. The step begins when it is about to join."""
        before = self._group.timeline.owners()
        newcomer, first_us = self._group.replicas.start(), self._group.reports.first_us
        self._group.wait_for(lambda: newcomer in first_us, f"{newcomer} connects", self._group.setup.step_deadline_s)
        self._carry_out("start", first_us[newcomer], before, self._is_balanced, f"{newcomer} serves its share")

    def _terminate(self, name: str) -> None:
        """SIGTERM, and wait until others serve what it had."""
        before, at_us = self._group.timeline.owners(), self._group.replicas.terminate(name)
        self._carry_out(
            SIGTERM,
            at_us,
            before,
            lambda: self._group.replicas.gone(name) and self._is_balanced(),
            f"others serve what {name} had, and it ends",
        )

    def _carry_out(self, kind: str, at_us: int, before: dict[int, str], done: Callable[[], bool], what: str) -> None:
        self._group.carry_out(kind, at_us, done, what)
        owners, owned = self._group.timeline.owners(), self._group.setup.owned
        changed = [number for number, owner in owners.items() if not owned or before.get(number) != owner]
        self._group.handovers += len(changed)

    def _is_balanced(self) -> bool:
        """Tell whether every running replica, and nobody else, serves its share of the partitions."""
        running, setup = self._group.replicas.running, self._group.setup
        if not setup.owned:
            return set(running) <= self._group.timeline.replicas()
        counts = Counter(self._group.timeline.owners().values())
        share = setup.partitions // len(running)
        return set(counts) <= set(running) and all(counts[one] >= share for one in running)
