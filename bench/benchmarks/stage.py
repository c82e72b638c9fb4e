"""The rate that one stage of the pipeline serves: a backlog, k processes of its module, and the time to its end."""

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

import msgspec
import psutil
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from autoscaler.live.kafka import client_config
from bench import BenchError
from bench.benchmark import Benchmark, Option, Row, Tools, check, environ_of
from bench.benchmarks.load import Loads
from contracts.children import Child, python_module
from contracts.clock import monotonic_s, now_us
from contracts.connection import Connection
from contracts.events import Timeline
from contracts.settings import unknown_name
from contracts.topics import Group, Topic, qualified
from contracts.waiting import until
from loadgen.orders import Orders, Record, order_event, payment_event

MOST: Final = 0.9
"""Share of the backlog at whose commit the measurement ends: the last records are not shared out evenly."""
FEWEST: Final = 4
"""Observed commits, the start included, from which the time before the first one is left out."""
START_S: Final = 120.0
STANDS_STILL_S: Final = 60.0
ASK_S: Final = 2.0
STOP_S: Final = 20.0


READS: Final[dict[str, tuple[Topic, ...]]] = {
    Group.ORDER: (Topic.ORDERS_PLACED, Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),
    Group.PAYMENT: (Topic.PAYMENTS_REQUESTED,),
    Group.SHIPMENT: (Topic.PAYMENTS_SETTLED,),
    Group.NOTIFICATION: (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
}
LOAD: Final = "load"
NAMES: Final = (LOAD, *READS)


class _Seen(NamedTuple):
    at_s: float
    processor_s: float
    done: float


@dataclass(kw_only=True)
class Stage(Benchmark):
    """Measure what one service serves with a backlog, or what the load generator sends on time."""

    name: Annotated[str, Option(f"One of {', '.join(NAMES)}.", positional=True)]
    instances: Annotated[str, Option("Numbers of processes, separated by commas.")] = "1"
    partitions: Annotated[int, Option("Partitions of each topic.", least=1, most=1_000)] = 4
    records: Annotated[int, Option("Orders in the backlog; 0: 20,000, or 1,500 with --quick.", least=0)] = 0
    service_time: Annotated[float, Option("Time that Payment takes for an event.", time=True)] = 0.005

    def cases(self) -> Sequence[str]:
        """Return the numbers of processes. Raises ValueError."""
        if self.name not in NAMES:
            raise ValueError(f"stage {self.name!r} is {unknown_name(self.name, NAMES)}")
        counts = self.instances.split(",")
        if any(int(one) < 1 for one in counts):
            raise ValueError(f"--instances {self.instances}: must be 1 or more")
        return counts

    def measure(self, case: str, tools: Tools) -> Row:
        """Measure so many processes on a broker of their own."""
        with tools.kafka("stage", self.partitions, self.partitions) as connection, TemporaryDirectory() as folder:
            if self.name == LOAD:
                loads = Loads(connection, self.partitions, Path(folder), int(case), tools.announce)
                return loads.measure(quick=self.quick)
            return self._serve(connection, Path(folder), int(case), tools)

    def _serve(self, connection: Connection, folder: Path, instances: int, tools: Tools) -> Row:
        orders = self.records or (1_500 if self.quick else 20_000)
        backlog = list(_orders(connection.namespace, orders, self.partitions))  # sent faster than it is served
        tools.announce(said=f"{self.name}, {instances} at work, {orders:,} orders")
        with ExitStack() as running:
            processes = [self._start(running, connection, folder, number) for number in range(instances)]
            members = min(instances, self.partitions)
            until(lambda: check(processes) and self._owners(connection) == members, START_S, "all own partitions")
            start = _seen(processes, 0)
            self._fill(connection, backlog)
            commits = self._commits(connection, processes, start, orders)
        first, last = commits[1 if len(commits) > FEWEST else 0], commits[-1]
        wall_s, done = last.at_s - first.at_s, last.done - first.done
        processor_s = last.processor_s - first.processor_s
        return {
            "stage": self.name,
            "instances": instances,
            "partitions": self.partitions,
            "orders": orders,
            "orders_per_s": round(done / wall_s, 1),
            "cores": round(processor_s / wall_s, 2),
            "ms_per_order": round(1e3 * processor_s / done, 3),
        }

    def _start(self, running: ExitStack, connection: Connection, folder: Path, number: int) -> Child:
        name = f"{self.name}-{number}"
        topics = {"pipeline_partitions": self.partitions, "payment_partitions": self.partitions}
        own = {"replica": name, "instance": number, "data_dir": folder / self.name, "demo": "true"}
        environ = environ_of(connection, service_time_s=self.service_time, **own, **topics)
        child = Child(name, python_module(f"services.{self.name}"), environ, folder / f"{name}.log")
        child.start()
        running.callback(child.stop, STOP_S)
        return child

    def _owners(self, connection: Connection) -> int:
        """Return how many members of the group own partitions; 0 while the coordinator does not answer."""
        group = qualified(connection.namespace, self.name)
        try:
            admin = AdminClient(client_config(connection))
            found = admin.describe_consumer_groups([group], request_timeout=ASK_S)[group].result(2 * ASK_S)
        except (KafkaException, TimeoutError):
            return 0
        if found.state is not ConsumerGroupState.STABLE:
            return 0
        return sum(bool(one.assignment and one.assignment.topic_partitions) for one in found.members)

    def _fill(self, connection: Connection, backlog: list[dict[Topic, Record]]) -> None:
        own = {"linger.ms": 5, "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000}
        producer = Producer(client_config(connection) | own)
        for records in backlog:
            for topic in READS[self.name]:
                key, value, headers, partition = records[topic]
                producer.produce(qualified(connection.namespace, topic), value, key, partition, headers=headers)
        if left := producer.flush(START_S):
            raise BenchError(f"{self.name}: {left} records were not taken by the broker")

    def _commits(self, connection: Connection, processes: Sequence[Child], start: _Seen, orders: int) -> list[_Seen]:
        """Return the state at the start and at each observed commit, until nearly all is committed."""
        inputs = [
            TopicPartition(qualified(connection.namespace, topic), partition)
            for topic in READS[self.name]
            for partition in range(self.partitions)
        ]
        commits = [start]
        consumer = Consumer(client_config(connection, group_id=qualified(connection.namespace, self.name)))
        try:
            while commits[-1].done < MOST * orders:
                check(processes)
                done = sum(max(one.offset, 0) for one in consumer.committed(inputs, ASK_S)) / len(READS[self.name])
                if done > commits[-1].done:
                    commits.append(_seen(processes, done))
                elif monotonic_s() - commits[-1].at_s > STANDS_STILL_S:
                    raise BenchError(f"{self.name} stands still at {commits[-1].done:,.0f} of {orders:,} orders")
                time.sleep(0.05)
        except KafkaException as wrong:
            raise BenchError(f"{self.name}: the broker does not answer what is committed: {wrong}") from wrong
        finally:
            consumer.close()
        return commits


def _seen(processes: Sequence[Child], done: float) -> _Seen:
    times = [psutil.Process(one.pid).cpu_times() for one in processes]
    return _Seen(monotonic_s(), sum(one.user + one.system for one in times), done)


def _orders(run: str, count: int, partitions: int) -> Iterator[dict[Topic, Record]]:
    """Yield for each order the records of all stages, by topic. Every payment is accepted, so each has a shipment."""
    made = Orders(run, 1)
    for number in range(count):
        at_us, order, name = now_us(), made.order(number), made.order_id(number)
        placed = order_event(order, at_us, None)(at_us)
        asked = payment_event(order, at_us, number % partitions)(at_us)
        stamps = dict.fromkeys(("intended_us", "placed_us", "accepted_us", "received_us", "done_us"), at_us)
        later = {  # a payment, a shipment and a notification in one
            **order.purchase(),
            **dict.fromkeys(("payment_id", "shipment_id", "notification_id"), name),
            **{"accepted": True, "decline_reason": None, "risk_score": 0.1, "text": f"Your order {name}"},
            **{"country": order.country, "parcel": "S", "carrier": "DHL", "promised_on": "2026-01-05"},
            "timeline": Timeline(**stamps, partition=0, offset=number, replica="payment-0"),
        }
        record = placed._replace(value=msgspec.json.encode(later), headers=[])
        behind = dict.fromkeys((Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT), record)
        yield {Topic.ORDERS_PLACED: placed, Topic.PAYMENTS_REQUESTED: asked, **behind}
