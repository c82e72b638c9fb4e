"""A Payment group for tests: real replica processes, manual plans, and their progress reports."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

import msgspec
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_helpers import DEADLINE_S, admin, read_all, wait_for

from contracts.events import PaymentRequested, PaymentSettled, Timeline
from contracts.plan import Eviction, PlanRecord
from contracts.progress import Progress, ReplicaState
from contracts.topics import Group, Topic, qualified

STOP_DEADLINE_S = 30.0
SHOWN_LINES = 40  # of each replica's log


def now_us() -> int:
    return time.time_ns() // 1000


def request(number: int) -> PaymentRequested:
    """Return the `number`-th payment request of a test. All are distinct, valid and accepted."""
    at = now_us()
    return PaymentRequested(
        order_id=str(uuid.UUID(int=number)), customer=f"customer-{number}", merchant="books", country="FR",
        currency="EUR", amount_minor=1000 + number % 1000, card_token=f"token-{number % 50}",
        timeline=Timeline(intended_us=at, placed_us=at),
    )  # fmt: skip


@dataclass
class PaymentGroup:
    """The group of one test. All its processes end with its block."""

    kafka: str
    namespace: str
    partitions: int
    folder: Path
    service_time_s: float = 0.005
    session_s: float = 6.0
    settings: dict[str, str] = field(default_factory=dict)
    """Further environment of each replica."""
    module: str = "services.payment"
    """The Python module that a replica runs."""
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    progress: dict[str, Progress] = field(default_factory=dict)
    history: list[Progress] = field(default_factory=list)
    produced: int = 0
    _epoch: int = 0

    def __enter__(self) -> "PaymentGroup":
        self._admin = admin(self.kafka)  # must outlive its answers
        client = {"bootstrap.servers": self.kafka, "log_level": 0}
        self._producer = Producer(client | {"linger.ms": 0, "enable.idempotence": True})
        self._reader = Consumer(client | {"group.id": "unused", "enable.auto.commit": False})
        self._reader.assign([TopicPartition(qualified(self.namespace, Topic.PROGRESS), 0, 0)])
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in self.processes.values():
            process.kill()
            process.wait(STOP_DEADLINE_S)
        self._reader.close()
        for log in sorted(self.folder.glob("*.log")):
            newest = "\n".join(log.read_text().splitlines()[-SHOWN_LINES:])
            print(f"--- {log.name}\n{newest}")  # noqa: T201  # pytest shows it if the test failed

    @property
    def group(self) -> str:
        return qualified(self.namespace, Group.PAYMENT)

    def start(self, *names: str) -> None:
        """Start replicas and return at once."""
        for name in names:
            environment = os.environ | {
                "TAILPACK_BOOTSTRAP_SERVERS": self.kafka,
                "TAILPACK_NAMESPACE": self.namespace,
                "TAILPACK_REPLICA": name,
                "TAILPACK_SERVICE_TIME_S": str(self.service_time_s),
                "TAILPACK_SESSION_S": str(self.session_s),
                "TAILPACK_PAYMENT_PARTITIONS": str(self.partitions),
                **self.settings,
            }
            with (self.folder / f"{name}.log").open("ab") as log:
                command = [sys.executable, "-m", self.module]
                self.processes[name] = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def signal(self, name: str, number: int) -> None:
        self.processes[name].send_signal(number)

    def stop(self, name: str) -> int:
        """Send SIGTERM; return the exit status. Fail after STOP_DEADLINE_S."""
        self.signal(name, signal.SIGTERM)
        return self.processes.pop(name).wait(STOP_DEADLINE_S)

    def kill(self, name: str) -> None:
        """Send SIGKILL, to simulate a crash."""
        self.signal(name, signal.SIGKILL)
        self.processes.pop(name).wait(STOP_DEADLINE_S)

    def plan(
        self, replicas: list[str], assignment: dict[int, str] | None = None, evictions: tuple[Eviction, ...] = ()
    ) -> int:
        """Write the next plan and return its epoch."""
        self._epoch += 1
        record = PlanRecord(
            epoch=self._epoch,
            at_us=now_us(),
            replicas=tuple(replicas),
            assignment=assignment,
            reason="a test wants it",
            evictions=evictions,
        )
        self.write(Topic.PLANS, msgspec.json.encode(record), key=self.group.encode())
        return self._epoch

    def write(self, topic: Topic, value: bytes | None, *, key: bytes | None = None, partition: int = -1) -> None:
        self._producer.produce(qualified(self.namespace, topic), value, key=key, partition=partition)
        assert self._producer.flush(DEADLINE_S) == 0

    def ask(self, count: int, *, partition: int | None = None) -> None:
        """Produce `count` payment requests to the partitions in turn, and wait until the broker has them."""
        topic = qualified(self.namespace, Topic.PAYMENTS_REQUESTED)
        for number in range(self.produced, self.produced + count):
            payment = request(number)
            at = number % self.partitions if partition is None else partition
            value = msgspec.json.encode(payment)
            self._producer.produce(topic, value, key=payment.order_id.encode(), partition=at)
        self.produced += count
        assert self._producer.flush(DEADLINE_S) == 0

    def ask_slow(self, partition: int) -> str:
        """Produce a request that takes TAILPACK_SLOW_EVENT_S; return its order id."""
        order_id = f"slow-{partition}-{now_us()}"
        payment = msgspec.structs.replace(request(0), order_id=order_id)
        self.write(Topic.PAYMENTS_REQUESTED, msgspec.json.encode(payment), key=order_id.encode(), partition=partition)
        return order_id

    def read_progress(self) -> dict[str, Progress]:
        """Return the newest report of each replica."""
        for record in self._reader.consume(500, 0.02):
            if record.error() is None:
                report = msgspec.json.decode(record.value(), type=Progress)
                self.history.append(report)
                self.progress[report.replica] = report
        return self.progress

    def owners(self) -> dict[int, str]:
        """Return partition → replica, by the newest reports of serving replicas."""
        serving = (ReplicaState.MEMBER, ReplicaState.DRAINING)
        members = [each for each in self.read_progress().values() if each.state in serving]
        members = [each for each in members if each.replica in self.processes]  # the last report of others is history
        return {partition: each.replica for each in members for partition in each.partitions}

    def wait_until(self, state: ReplicaState, *names: str, deadline_s: float = DEADLINE_S) -> None:
        wait_for(
            lambda: all(name in self.read_progress() and self.progress[name].state is state for name in names),
            f"{names} in state {state}",
            deadline_s=deadline_s,
        )

    def wait_for_owners(self, expected: dict[int, str], *, deadline_s: float = DEADLINE_S) -> None:
        try:
            wait_for(lambda: self.owners() == expected, f"the assignment {expected}", deadline_s=deadline_s)
        except AssertionError as late:
            exits = {name: process.poll() for name, process in self.processes.items()}
            late.add_note(f"exit status: {exits}; newest reports: {self.progress}")
            raise

    def wait_for_epoch(self, epoch: int, *names: str, deadline_s: float = DEADLINE_S) -> None:
        wait_for(
            lambda: all(self.read_progress()[name].assigned_epoch >= epoch for name in names),
            f"{names} serve under epoch {epoch}",
            deadline_s=deadline_s,
        )

    def settled(self) -> list[PaymentSettled]:
        """Return all settled payments so far, in the order of each partition."""
        records = read_all(self.kafka, self.namespace, Topic.PAYMENTS_SETTLED)
        return [msgspec.json.decode(record.value(), type=PaymentSettled) for record in records]

    def wait_until_served(self, *, deadline_s: float = 2 * DEADLINE_S) -> list[PaymentSettled]:
        """Wait until every requested payment is settled; return all records of payments.settled."""
        wait_for(
            lambda: len({each.order_id for each in self.settled()}) >= self.produced,
            f"{self.produced} distinct payments settled",
            deadline_s=deadline_s,
            every_s=0.3,
        )
        return self.settled()

    def describe(self):  # type: ignore[no-untyped-def]  # confluent-kafka ships no types
        """Return the group's description from Kafka's own tools."""
        return self._admin.describe_consumer_groups([self.group])[self.group].result(DEADLINE_S)

    def committed(self) -> dict[int, int]:
        """Return partition → committed offset, from the group coordinator."""
        topic = qualified(self.namespace, Topic.PAYMENTS_REQUESTED)
        # By a consumer that never joins: the admin client crashes when the coordinator has just moved.
        asking = Consumer({"bootstrap.servers": self.kafka, "group.id": self.group, "log_level": 0})
        try:
            numbers = asking.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
            found = asking.committed([TopicPartition(topic, number) for number in numbers], timeout=DEADLINE_S)
            return {each.partition: each.offset for each in found if each.offset >= 0}
        finally:
            asking.close()


def assert_effects(settled: list[PaymentSettled], produced: int) -> int:
    """Check that every payment exists and repeats are equal; return the number of repeats."""
    counts = Counter(each.payment_id for each in settled)
    assert len(counts) == produced
    verdicts: dict[str, tuple[object, ...]] = {}
    for each in settled:
        verdict = (each.order_id, each.accepted, each.decline_reason, each.risk_score, each.timeline.offset)
        assert verdicts.setdefault(each.payment_id, verdict) == verdict, "a repeat must be identical"
    return len(settled) - produced
