"""One experiment's surroundings, built up and taken down in order: broker, topics, replicas, load, readers."""

import os
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import Producer

from bench.handover.evidence import Evidence, Step
from contracts.connection import Connection
from contracts.progress import ReplicaState
from contracts.topics import Topic, qualified
from loadgen.events import PaymentEvent
from loadgen.orders import Orders
from tailpack.errors import TailpackError
from tailpack.labs.clients import producer
from tailpack.labs.commits import Commits
from tailpack.labs.generator import Sent
from tailpack.labs.load import Load
from tailpack.labs.plans import Plans
from tailpack.labs.replicas import Replicas
from tailpack.labs.reports import Reports
from tailpack.labs.runtimes import SESSION_S, Runtime
from tailpack.labs.timeline import Timeline
from tailpack.local.broker import Broker
from tailpack.local.topics import create_topics

POLL_S: Final = 0.02
START_DEADLINE_S: Final = 60.0
START_EACH_S: Final = 3.0
"""More for each replica: an interpreter's start costs a core most of a second."""
DRAIN_DEADLINE_S: Final = 20.0
SEND_DEADLINE_S: Final = 10.0


class OverdueError(Exception):
    """What an experiment waited for did not happen in time."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What an experiment needs. Lengths of time in seconds, `rate` in events/s."""

    runtime: Runtime
    heartbeat_s: float = 3.0
    replicas: int = 3
    partitions: int = 6
    rate: float = 150.0
    """0: no load."""
    loaded_partitions: int = 0
    """The load goes to the first ones only; 0: to all."""
    service_time_s: float = 0.005
    seed: int = 1
    bootstrap_servers: str = ""
    """A Kafka that runs already; empty: one of its own."""
    environ: Mapping[str, str] = field(default_factory=dict)
    """Added to the environment of the replicas."""


class Lab:
    """As a context manager it leaves no process and no file behind."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self._stack = ExitStack()
        self._checks: list[Callable[[], None]] = []
        self._load: Load | None = None
        self._slow_us: list[int] = []

    def __enter__(self) -> "Lab":
        try:
            self._build()
        except BaseException:  # Ctrl-C included
            self._stack.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def _build(self) -> None:
        setup = self.setup
        self.folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        self.connection = Connection(
            bootstrap_servers=setup.bootstrap_servers or self._own_broker(), namespace=f"lab-{uuid.uuid4().hex[:8]}"
        )
        create_topics(self.connection, setup.partitions)
        self.plans = Plans(self.connection)
        self._producer = Producer(producer(self.connection))
        self.timeline, self.reports = Timeline(self.connection), Reports(self.connection)
        self.commits = Commits(self.connection, setup.partitions)
        for reader in (self.timeline, self.reports, self.commits):
            self._stack.callback(reader.close)
        self.replicas = Replicas(setup.runtime.module, self._environ(), self.folder)
        self._stack.callback(self.replicas.close)
        self._checks.append(self.replicas.check)

    def _own_broker(self) -> str:
        broker = Broker(self.folder / "kafka")
        self._stack.callback(broker.stop)
        return broker.start()

    def _environ(self) -> Mapping[str, str]:
        setup = self.setup
        settings = {
            "BOOTSTRAP_SERVERS": self.connection.bootstrap_servers,
            "CLIENT_PROPERTIES": self.connection.client_properties,
            "NAMESPACE": self.connection.namespace,
            "SERVICE_TIME_S": str(setup.service_time_s),
            "PAYMENT_PARTITIONS": "0",  # the topic may grow
            "HEARTBEAT_S": str(setup.heartbeat_s),
            "SESSION_S": str(max(SESSION_S, 2 * setup.heartbeat_s)),
        }
        named = {f"TAILPACK_{name}": value for name, value in settings.items()}
        return {**os.environ, **named, **setup.runtime.environ, **setup.environ}

    def start_group(self) -> float:
        """Start the replicas, partitions dealt out evenly; wait until each has what it shall have; return the seconds.

        Without a plan nothing is waited for here: events tell.
        """
        began_s = time.monotonic()
        setup = self.setup
        names = tuple(f"payment-{number}" for number in range(setup.replicas))
        if setup.runtime.takes_plan:
            self.plans.write(names, {number: names[number % len(names)] for number in range(setup.partitions)})
        for _ in names:
            self.replicas.start()
        if setup.runtime.takes_plan:
            self.wait_for_plan(START_DEADLINE_S + START_EACH_S * len(names))
        return time.monotonic() - began_s

    def start_load(self) -> None:
        """Start the load, and wait until events of each loaded partition have been finished."""
        setup = self.setup
        loaded = setup.loaded_partitions or setup.partitions
        self._load = Load(self.connection, self.folder, rate=setup.rate, partitions=loaded, seed=setup.seed)
        self._stack.callback(self._load.close)
        self._load.start()
        self._checks.append(self._load.check)
        self.wait_for(
            lambda: len(self.timeline.owners()) == loaded, "an event of each partition is finished", START_DEADLINE_S
        )

    def stop_load(self, deadline_s: float = DRAIN_DEADLINE_S) -> Sent:
        """End the load and wait, up to the deadline, until what it sent has been finished; return what it sent."""
        assert self._load
        self._checks.remove(self._load.check)
        sent = self._load.stop()
        self.timeline.go_on()
        acknowledged = len(sent.acknowledged_us())
        until = time.monotonic() + deadline_s
        while len({row.intended_us for row in self.timeline.since(0)}) < acknowledged and time.monotonic() < until:
            self.pump(until_s=time.monotonic() + 0.3)
        return sent

    def send_slow(self, partition: int) -> None:
        """Send one event that takes long (TAILPACK_SLOW_EVENT_S), intended now. Raises TailpackError."""
        at_us = now_us()
        number = len(self._slow_us)
        order = Orders(f"{self.connection.namespace}-slow", self.setup.seed).order(number)
        slow = msgspec.structs.replace(order, order_id=f"slow-{order.order_id}")
        record = PaymentEvent(slow, at_us, partition).record(at_us)
        self._producer.produce(
            qualified(self.connection.namespace, Topic.PAYMENTS_REQUESTED), record.value, record.key, partition
        )
        if self._producer.flush(SEND_DEADLINE_S):
            raise TailpackError(f"an event was not taken by the broker within {SEND_DEADLINE_S:g} s")
        self._slow_us.append(at_us)

    def start_replica(self, deadline_s: float = START_DEADLINE_S) -> str:
        """Start one more and wait until it says that it is ready; return its name. For runtimes that take a plan."""
        name = self.replicas.start()
        ready = (ReplicaState.WARM, ReplicaState.MEMBER)
        self.wait_for(lambda: self.reports.state(name) in ready, f"{name} is warm", deadline_s)
        return name

    def pump(self, *, until_s: float) -> None:
        """Take in what arrives until `until_s` (monotonic). Raises TailpackError when a process ended by itself."""
        while True:
            self.timeline.poll(max(0.0, min(POLL_S, until_s - time.monotonic())))
            self.reports.poll()
            self.commits.sample()
            for check in self._checks:
                check()
            if time.monotonic() >= until_s:
                return

    def rest(self, length_s: float) -> tuple[int, int]:
        """Change nothing for a while; return the stretch, µs since the epoch."""
        from_us = now_us()
        self.pump(until_s=time.monotonic() + length_s)
        return from_us, now_us()

    def wait_for(self, condition: Callable[[], bool], what: str, deadline_s: float) -> None:
        """Take in what arrives until `condition` holds. Raises OverdueError."""
        until = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() > until:
                raise OverdueError(f"not within {deadline_s:.0f} s: {what}")
            self.pump(until_s=time.monotonic() + POLL_S)

    def wait_for_plan(self, deadline_s: float) -> None:
        """Wait until the replicas report what the newest plan gives them. Raises OverdueError."""
        wanted = dict(self.plans.assignment)
        self.wait_for(
            lambda: self.reports.owners(self.replicas.running) == wanted,
            f"plan {self.plans.epoch} is in force",
            deadline_s,
        )

    def evidence(self, steps: "list[Step]", quiet: "list[tuple[int, int]]", sent: Sent) -> Evidence:
        """Return what was seen."""
        return Evidence(
            sent_us=np.append(sent.acknowledged_us(), np.array(self._slow_us, dtype=np.int64)),
            served=self.timeline.served(),
            steps=tuple(steps),
            quiet=tuple(quiet),
            committed=self.commits.samples(),
            owned=self.setup.runtime.owned,
        )


def now_us() -> int:
    """Return µs since the epoch."""
    return time.time_ns() // 1000


def as_error(overdue: OverdueError) -> TailpackError:
    """Return the same for the user."""
    return TailpackError(f"{overdue}; the group does not carry out what it is told: see docs/handover.md")
