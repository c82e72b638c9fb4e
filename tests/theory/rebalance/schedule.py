"""A scenario: plans, load and faults from one seed. After the last fault all events must be served."""

import random
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import msgspec
from theory.rebalance.checks import Checks, ViolationError
from theory.rebalance.cluster import Cluster
from theory.rebalance.processes import BEGIN_S, Process, Simulation
from theory.rebalance.replica import REBALANCE_S, SESSION_S, Replica

from contracts.plan import Eviction, PlanRecord, plan_key
from contracts.rebalance_protocol import RebalanceProtocol

SETTLING_S: Final = 1.0
"""Time before the first fault."""
RECOVERY_S: Final = SESSION_S + REBALANCE_S + 6.0
"""Time limit after the last fault until all partitions are served and committed."""

Action = Callable[["Scenario"], None]


@dataclass
class Scenario:
    """One run. actions: (seconds after the start, action)."""

    seed: int
    replicas: int = 3
    partitions: int = 3
    nodes: int = 1
    rebalance_protocol: RebalanceProtocol = RebalanceProtocol.INCREMENTAL
    rate: float = 5.0
    """Events per second and partition."""
    actions: list[tuple[float, Action]] = field(default_factory=list)
    stranger_s: float | None = None
    """When a member joins that reads another topic (s after the start of the first replica); None: never."""
    at_messages: dict[int, Callable[[int], Action]] = field(default_factory=dict)
    """Number of a message of the group protocol → action on the replica of that message."""
    late_s: dict[int, float] = field(default_factory=dict)
    """Number of such a message → its extra delay (s)."""
    messages: int = 0
    history: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    """Errors with which replicas ended."""

    def run(self) -> "Scenario":
        """Run the scenario. Raises ViolationError with the seed and the last events."""
        with Simulation(self.seed) as self.sim, ExitStack() as patches:
            topics = {"events": self.partitions, "plans": 1, "progress": 1, "output": 1, "others": 1}
            self.cluster = Cluster(self.sim, topics, self.nodes)
            self.checks = Checks(self.cluster, SESSION_S)
            self.replicas_by_name: dict[str, Replica] = {}
            self.epoch = 0
            for what, value in {
                "aiokafka.client.create_conn": self.cluster.network.connect,
                "services.consumer.connections.time": SimpleNamespace(monotonic=lambda: self.sim.now_s),
                "services.consumer.connections.BUSY_FETCH_WAIT_MS": 200,
                "services.consumer.plan_reader.FETCH_WAIT_MS": 200,
                "services.consumer.clients.MIN_REQUEST_TIMEOUT_S": SESSION_S / 3,
                "services.consumer.output.PROGRESS_INTERVAL_S": 2.0,
            }.items():
                patches.enter_context(patch(what, value))
            try:
                self._simulate()
            except ViolationError as violation:
                raise ViolationError(f"seed {self.seed}, {self}: {violation}") from None
        return self

    def __str__(self) -> str:
        return " → ".join(self.history[-12:]) or "nothing"

    def log_event(self, what: str, is_fault: bool = False) -> None:
        """Add an event to the history."""
        self.history.append(f"{self.sim.now_s - BEGIN_S:.3f} {what}")
        if is_fault:
            self.checks.record_fault(what)

    def plan(self, owners: list[str], *dead: Replica) -> None:
        """Write a plan with the owner of each partition and evictions of dead replicas."""
        self.epoch += 1
        plan = PlanRecord(
            epoch=self.epoch,
            at_us=0,
            replicas=tuple(sorted(set(owners))),
            assignment=dict(enumerate(owners)),
            reason="",
            group="group",
            topic="events",
            evictions=tuple(Eviction(replica=r.name, member_id=r.member_id, incarnation="") for r in dead),
        )
        self.owners = owners
        self.log_event(f"plan {self.epoch} {' '.join(owners)}")
        self.cluster.append("plans", 0, plan_key("group", "events"), msgspec.json.encode(plan))

    def start(self, name: str) -> None:
        """Start a process."""
        self.replicas_by_name[name] = Replica(self.sim, name, self.checks, self.nodes, self.rebalance_protocol)

    def _simulate(self) -> None:
        names = [f"r{number}" for number in range(self.replicas)]
        if self.stranger_s is not None:
            stranger = partial(Replica, self.sim, "stranger", self.checks, self.nodes, self.rebalance_protocol)
            self.sim.at(self.sim.now_s + self.stranger_s, partial(stranger, topic="others"))
            self.sim.run(self.sim.now_s + (0.0 if self.stranger_s else 0.5))
        for name in names:
            self.start(name)
        self.plan([names[p % len(names)] for p in range(self.partitions)])
        end_s = self.sim.now_s + SETTLING_S + max((at_s for at_s, _ in self.actions), default=0.0)
        for p in range(self.partitions):
            self.sim.at(self.sim.now_s + 0.3 + 0.01 * p, self._produce, p, end_s)
        for at_s, action in self.actions:
            self.sim.at(self.sim.now_s + SETTLING_S + at_s, action, self)
        self.sim.at(self.sim.now_s + SETTLING_S, setattr, self.cluster.network, "message_delay_s", self._count)
        self._supervise(end_s)
        self.sim.run(end_s + SESSION_S)
        if not self.sim.run(self.sim.now_s + RECOVERY_S, lambda: not self._pending_work()):
            raise ViolationError(f"{RECOVERY_S:g} s after the last fault {self._pending_work()}")

    def _pending_work(self) -> str:
        elsewhere = [p for p, name in enumerate(self.owners) if p not in self.replicas_by_name[name].partitions]
        return self.checks.pending_work() or (
            f"partitions {elsewhere} are not where the plan wants them" if elsewhere else ""
        )

    def _count(self, process: Process) -> float:
        self.messages += 1
        if action := self.at_messages.get(self.messages):
            self.sim.at(self.sim.now_s, action(int(process.name[1:])), self)
        if self.messages in self.late_s:
            self.log_event(f"a message of {process.name} is late", is_fault=True)
        return self.late_s.get(self.messages, 0.0)

    def _produce(self, partition: int, until_s: float) -> None:
        self.cluster.append("events", partition, b"key", b"")
        if self.sim.now_s < until_s + SESSION_S:
            pause_s = 2 * self.sim.jitter(f"events {partition}") / self.rate
            self.sim.at(self.sim.now_s + pause_s, self._produce, partition, until_s)

    def _supervise(self, until_s: float) -> None:
        for name, replica in [*self.replicas_by_name.items()]:
            if replica.is_dead:
                if replica.ended not in ("killed", "stopped"):
                    self.ended.append(replica.ended)
                    self.log_event(f"{name} ends: {replica.ended}", is_fault=True)
                    if not self.checks.faults[:-1]:
                        raise ViolationError(f"{name} ends by itself: {replica.ended}")
                self.start(name)
                self.log_event(f"{name} is started again")
                self.plan(self.owners, replica)
        self.sim.at(self.sim.now_s + 0.25, self._supervise, until_s)


# Functions that return actions


def replan(choice: int) -> Action:
    def action(scenario: Scenario) -> None:
        names, chance = [*scenario.replicas_by_name], random.Random(choice)
        scenario.plan([chance.choice(names) for _ in range(scenario.partitions)])

    return action


def kill(number: int) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"r{number} is killed", is_fault=True)
        scenario.replicas_by_name[f"r{number}"].kill()

    return action


def terminate(number: int) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"r{number} gets SIGTERM")
        scenario.replicas_by_name[f"r{number}"].send_sigterm()

    return action


def freeze(number: int, for_s: float) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"r{number} is stopped for {for_s:.2f} s", is_fault=True)
        scenario.replicas_by_name[f"r{number}"].freeze(for_s)

    return action


def slow(number: int, for_s: float) -> Action:
    """Make the next events of a replica take longer."""

    def action(scenario: Scenario) -> None:
        replica = scenario.replicas_by_name[f"r{number}"]
        scenario.log_event(f"events of r{number} take {for_s:.2f} s", is_fault=for_s > REBALANCE_S / 3)
        replica.service_s = for_s
        scenario.sim.at(scenario.sim.now_s + 0.3, setattr, replica, "service_s", 0.005)

    return action


def serve_in(service_s: float) -> Action:
    """Set the service time of all replicas."""

    def action(scenario: Scenario) -> None:
        for replica in scenario.replicas_by_name.values():
            replica.service_s = service_s

    return action


def cut(number: int, for_s: float) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"r{number} is cut off for {for_s:.2f} s", is_fault=True)
        scenario.cluster.network.cut(scenario.replicas_by_name[f"r{number}"], None, scenario.sim.now_s + for_s)

    return action


def reset(number: int) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"connections of r{number} break", is_fault=True)
        scenario.cluster.network.reset(scenario.replicas_by_name[f"r{number}"], None)

    return action


def restart(node: int, down_s: float) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"node {node} restarts in {down_s:.2f} s", is_fault=True)
        scenario.cluster.restart(node, down_s)

    return action


def vanish(node: int, away_s: float) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"node {node} is away for {away_s:.2f} s", is_fault=True)
        scenario.cluster.vanish(node, away_s)

    return action


def suspend(for_s: float) -> Action:
    """Suspend the machine of the replicas, but not of the brokers."""

    def action(scenario: Scenario) -> None:
        scenario.log_event(f"all replicas are stopped for {for_s:.2f} s", is_fault=True)
        for replica in scenario.replicas_by_name.values():
            replica.freeze(for_s)

    return action


def set_clock(by_s: float) -> Action:
    def action(scenario: Scenario) -> None:
        scenario.log_event(f"the wall clock is set by {by_s:+g} s")
        scenario.sim.wall_s += by_s

    return action


def blind(number: int, for_s: float) -> Action:
    """Leave a replica's fetches of plans unanswered."""

    def action(scenario: Scenario) -> None:
        scenario.log_event(f"r{number} cannot read plans for {for_s:.2f} s")
        scenario.cluster.blind.add(f"r{number}")
        scenario.sim.at(scenario.sim.now_s + for_s, scenario.cluster.blind.discard, f"r{number}")

    return action


def all_of(*actions: Action) -> Action:
    def action(scenario: Scenario) -> None:
        for each in actions:
            each(scenario)

    return action


def evict(number: int) -> Action:
    """Evict a replica that is alive."""

    def action(scenario: Scenario) -> None:
        scenario.log_event(f"r{number} is evicted alive", is_fault=True)
        scenario.plan(scenario.owners, scenario.replicas_by_name[f"r{number}"])

    return action


def swap(seed: int = 0, *, rate: float = 5.0, actions: Iterable[tuple[float, Action]] = (), **at: Any) -> Scenario:
    """Return a short scenario in which two replicas exchange their partitions."""
    first = (0.0, lambda scenario: scenario.plan(["r1", "r0"]))
    return Scenario(seed, replicas=2, partitions=2, rate=rate, actions=[first, *actions], **at)


def random_scenario(seed: int, max_faults: int = 4) -> Scenario:
    """Return a random scenario: new plans throughout, and at most `max_faults` faults, which may overlap."""
    chance = random.Random(seed)
    scenario = Scenario(seed, nodes=chance.choice((1, 1, 3)))
    if chance.random() < 0.15:
        scenario.rebalance_protocol = RebalanceProtocol.EAGER
    number, node = lambda: chance.randrange(scenario.replicas), lambda: chance.randint(1, scenario.nodes)
    short, long = lambda: chance.uniform(0.05, 0.6 * SESSION_S), lambda: chance.uniform(0.6, 3.0) * SESSION_S
    kinds: list[Callable[[], Action]] = [
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
    if scenario.nodes > 1:
        kinds.append(lambda: vanish(node(), long()))
    at_s = 0.0
    for _ in range(chance.randint(min(1, max_faults), max_faults)):
        at_s += chance.choice((0.0, 0.005, 0.02, 0.1, 0.5, 2.0)) * chance.random()
        scenario.actions.append((at_s, chance.choice(kinds)()))
    scenario.actions += [(chance.uniform(-0.02, at_s + 1.0), replan(chance.getrandbits(30))) for _ in range(4)]
    return scenario
