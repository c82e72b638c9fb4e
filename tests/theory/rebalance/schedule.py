"""A group under a schedule: plans, load, faults, all from one seed; then peace, and everything must be served."""

import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import msgspec
from theory.rebalance.checks import Checks, ViolationError
from theory.rebalance.cluster import Cluster
from theory.rebalance.processes import BEGIN_S, Process, World
from theory.rebalance.replica import REBALANCE_S, SESSION_S, Replica

from contracts.delivery import Delivery
from contracts.plan import Eviction, PlanRecord

SETTLING_S: Final = 1.0
"""Before anything goes wrong."""
RECOVERY_S: Final = SESSION_S + REBALANCE_S + 6.0
"""After the last fault is over, every partition is served and committed within this."""

Act = Callable[["Story"], None]


@dataclass
class Story:
    """One run. `acts`: seconds after the beginning → what happens then."""

    seed: int
    replicas: int = 3
    partitions: int = 3
    nodes: int = 1
    delivery: Delivery = Delivery.INCREMENTAL
    rate: float = 5.0
    """Events a second and partition."""
    acts: list[tuple[float, Act]] = field(default_factory=list)
    at_messages: dict[int, Callable[[int], Act]] = field(default_factory=dict)
    """Number of a message of the group's protocol, from the beginning → what then happens to the replica."""
    late_s: dict[int, float] = field(default_factory=dict)
    """Number of such a message → how much later it arrives."""
    messages: int = 0
    history: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """Why replicas ended by themselves."""

    def run(self) -> "Story":
        """Play it. Raises ViolationError with the seed and what happened."""
        with World(self.seed) as self.world, ExitStack() as patches:
            topics = {"events": self.partitions, "plans": 1, "progress": 1, "output": 1}
            self.cluster = Cluster(self.world, topics, self.nodes)
            self.checks = Checks(self.cluster, SESSION_S)
            self.live: dict[str, Replica] = {}
            self.epoch = 0
            for what, value in {
                "aiokafka.client.create_conn": self.cluster.network.connect,
                "services.consumer.connections.time": SimpleNamespace(monotonic=lambda: self.world.now_s),
                "services.consumer.poller.BUSY_FETCH_WAIT_MS": 200,
                "services.consumer.clients.BUSY_FETCH_WAIT_MS": 200,
                "services.consumer.clients.MIN_REQUEST_TIMEOUT_S": SESSION_S / 3,
                "services.consumer.output.PROGRESS_INTERVAL_S": 2.0,
            }.items():
                patches.enter_context(patch(what, value))
            try:
                self._play()
            except ViolationError as broken:
                raise ViolationError(f"seed {self.seed}, {self}: {broken}") from None
        return self

    def __str__(self) -> str:
        return " → ".join(self.history[-12:]) or "nothing"

    def tell(self, what: str, is_fault: bool = False) -> None:
        """Note what happens."""
        self.history.append(f"{self.world.now_s - BEGIN_S:.3f} {what}")
        if is_fault:
            self.checks.fault(what)

    def plan(self, owners: list[str], *gone: Replica) -> None:
        """Write a plan: the owner of each partition; `gone` are known to be dead."""
        self.epoch += 1
        plan = PlanRecord(
            epoch=self.epoch,
            at_us=0,
            replicas=tuple(sorted(set(owners))),
            assignment=dict(enumerate(owners)),
            reason="",
            evictions=tuple(Eviction(replica=one.name, member_id=one.member_id, incarnation="") for one in gone),
        )
        self.owners = owners
        self.tell(f"plan {self.epoch} {' '.join(owners)}")
        self.cluster.append("plans", 0, b"group", msgspec.json.encode(plan))

    def start(self, name: str) -> None:
        """Start a process."""
        self.live[name] = Replica(self.world, name, self.checks, self.nodes, self.delivery)

    def _play(self) -> None:
        names = [f"r{number}" for number in range(self.replicas)]
        for name in names:
            self.start(name)
        self.plan([names[p % len(names)] for p in range(self.partitions)])
        end_s = self.world.now_s + SETTLING_S + max((at_s for at_s, _ in self.acts), default=0.0)
        for p in range(self.partitions):
            self.world.at(self.world.now_s + 0.3 + 0.01 * p, self._feed, p, end_s)
        for at_s, act in self.acts:
            self.world.at(self.world.now_s + SETTLING_S + at_s, act, self)
        self.world.at(self.world.now_s + SETTLING_S, setattr, self.cluster.network, "meddle", self._count)
        self._supervise(end_s)
        self.world.run(end_s + SESSION_S)
        if not self.world.run(self.world.now_s + RECOVERY_S, lambda: not self._unrest()):
            raise ViolationError(f"{RECOVERY_S:g} s after the last fault {self._unrest()}")

    def _unrest(self) -> str:
        elsewhere = [p for p, name in enumerate(self.owners) if p not in self.live[name].partitions]
        return self.checks.unrest() or (
            f"partitions {elsewhere} are not where the plan wants them" if elsewhere else ""
        )

    def _count(self, process: Process) -> float:
        self.messages += 1
        if act := self.at_messages.get(self.messages):
            self.world.at(self.world.now_s, act(int(process.name[1:])), self)
        if self.messages in self.late_s:
            self.tell(f"a message of {process.name} is late", is_fault=True)
        return self.late_s.get(self.messages, 0.0)

    def _feed(self, partition: int, until_s: float) -> None:
        self.cluster.append("events", partition, b"key", b"")
        if self.world.now_s < until_s + SESSION_S:
            pause_s = 2 * self.world.jitter(f"events {partition}") / self.rate
            self.world.at(self.world.now_s + pause_s, self._feed, partition, until_s)

    def _supervise(self, until_s: float) -> None:
        for name, replica in [*self.live.items()]:
            if replica.is_dead:
                if replica.ended not in ("killed", "stopped"):
                    self.ended.append(replica.ended)
                    self.tell(f"{name} ends: {replica.ended}", is_fault=True)
                    if not self.checks.faults[:-1]:
                        raise ViolationError(f"{name} ends by itself: {replica.ended}")
                self.start(name)
                self.tell(f"{name} is started again")
                self.plan(self.owners, replica)
        self.world.at(self.world.now_s + 0.25, self._supervise, until_s)


# What may happen. Each returns an act.


def replan(choice: int) -> Act:
    def act(story: Story) -> None:
        names, chance = [*story.live], random.Random(choice)
        story.plan([chance.choice(names) for _ in range(story.partitions)])

    return act


def kill(number: int) -> Act:
    def act(story: Story) -> None:
        story.tell(f"r{number} is killed", is_fault=True)
        story.live[f"r{number}"].kill()

    return act


def terminate(number: int) -> Act:
    def act(story: Story) -> None:
        story.tell(f"r{number} is told to stop")
        story.live[f"r{number}"].stop_gently()

    return act


def freeze(number: int, for_s: float) -> Act:
    def act(story: Story) -> None:
        story.tell(f"r{number} is stopped for {for_s:.2f} s", is_fault=True)
        story.live[f"r{number}"].freeze(for_s)

    return act


def slow(number: int, for_s: float) -> Act:
    """The next events of a replica take longer."""

    def act(story: Story) -> None:
        replica = story.live[f"r{number}"]
        story.tell(f"events of r{number} take {for_s:.2f} s", is_fault=for_s > REBALANCE_S / 3)
        replica.service_s = for_s
        story.world.at(story.world.now_s + 0.3, setattr, replica, "service_s", 0.005)

    return act


def serve_in(service_s: float) -> Act:
    """From now on, at all replicas."""

    def act(story: Story) -> None:
        for replica in story.live.values():
            replica.service_s = service_s

    return act


def cut(number: int, for_s: float) -> Act:
    def act(story: Story) -> None:
        story.tell(f"r{number} is cut off for {for_s:.2f} s", is_fault=True)
        story.cluster.network.cut(story.live[f"r{number}"], None, story.world.now_s + for_s)

    return act


def reset(number: int) -> Act:
    def act(story: Story) -> None:
        story.tell(f"connections of r{number} break", is_fault=True)
        story.cluster.network.reset(story.live[f"r{number}"], None)

    return act


def restart(node: int, down_s: float) -> Act:
    def act(story: Story) -> None:
        story.tell(f"node {node} restarts in {down_s:.2f} s", is_fault=True)
        story.cluster.restart(node, down_s)

    return act


def vanish(node: int, away_s: float) -> Act:
    def act(story: Story) -> None:
        story.tell(f"node {node} is gone for {away_s:.2f} s", is_fault=True)
        story.cluster.vanish(node, away_s)

    return act


def suspend(for_s: float) -> Act:
    """The replicas' machine sleeps; the broker's does not."""

    def act(story: Story) -> None:
        story.tell(f"all replicas are stopped for {for_s:.2f} s", is_fault=True)
        for replica in story.live.values():
            replica.freeze(for_s)

    return act


def set_clock(by_s: float) -> Act:
    def act(story: Story) -> None:
        story.tell(f"the wall clock is set by {by_s:+g} s")
        story.world.wall_s += by_s

    return act


def both(*acts: Act) -> Act:
    def act(story: Story) -> None:
        for each in acts:
            each(story)

    return act


def evict(number: int) -> Act:
    """A false alarm."""

    def act(story: Story) -> None:
        story.tell(f"r{number} is evicted alive", is_fault=True)
        story.plan(story.owners, story.live[f"r{number}"])

    return act


def swap(seed: int = 0, *, rate: float = 5.0, acts: Iterable[tuple[float, Act]] = (), **at: Any) -> Story:
    """Return a short story: two replicas exchange their partitions. at: `at_messages`, `late_s`."""
    first = (0.0, lambda story: story.plan(["r1", "r0"]))
    return Story(seed, replicas=2, partitions=2, rate=rate, acts=[first, *acts], **at)


def random_story(seed: int, most_faults: int = 4) -> Story:
    """Return a schedule: plans all the time, and so many things that go wrong at most, also at once."""
    chance = random.Random(seed)
    story = Story(seed, nodes=chance.choice((1, 1, 3)))
    if chance.random() < 0.15:
        story.delivery = Delivery.EAGER
    number, node = lambda: chance.randrange(story.replicas), lambda: chance.randint(1, story.nodes)
    short, long = lambda: chance.uniform(0.05, 0.6 * SESSION_S), lambda: chance.uniform(0.6, 3.0) * SESSION_S
    kinds: list[Callable[[], Act]] = [
        lambda: kill(number()),
        lambda: terminate(number()),
        lambda: freeze(number(), short()),
        lambda: freeze(number(), long()),
        lambda: slow(number(), chance.uniform(0.05, 1.5)),
        lambda: cut(number(), short()),
        lambda: cut(number(), long()),
        lambda: reset(number()),
        lambda: restart(node(), chance.uniform(0.01, 1.2)),
        lambda: evict(number()),
        lambda: suspend(chance.uniform(0.1, 3.0) * SESSION_S),
        lambda: set_clock(chance.choice((-3600.0, 3600.0))),
    ]
    if story.nodes > 1:
        kinds.append(lambda: vanish(node(), long()))
    at_s = 0.0
    for _ in range(chance.randint(min(1, most_faults), most_faults)):
        at_s += chance.choice((0.0, 0.005, 0.02, 0.1, 0.5, 2.0)) * chance.random()
        story.acts.append((at_s, chance.choice(kinds)()))
    story.acts += [(chance.uniform(-0.02, at_s + 1.0), replan(chance.getrandbits(30))) for _ in range(4)]
    return story
