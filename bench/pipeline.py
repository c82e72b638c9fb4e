"""What Order, Shipment and Notification serve in a second, each alone, by so many instances on so many partitions.

A stage finds all that it reads in the pipeline: Notification payments and shipments, Order the news of its orders, too.
"""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Final, NamedTuple

import msgspec
import psutil
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from autoscaler.live.kafka import client
from bench import BenchError
from bench.results import PipelineRow
from contracts.children import last_log_line, python_module, start, wait_for_end
from contracts.clock import now_us, steady_s
from contracts.connection import Connection
from contracts.events import NotificationSent, PaymentSettled, ShipmentScheduled, Timeline
from contracts.topics import Topic, qualified
from contracts.validation import as_environment
from loadgen.orders import Orders, Record, order_event

WRITES: Final = {
    "order": Topic.PAYMENTS_REQUESTED,
    "shipment": Topic.SHIPMENTS_SCHEDULED,
    "notification": Topic.NOTIFICATIONS_SENT,
}
"""Stage → where it writes one record for each order."""
READS: Final = {
    "order": (Topic.ORDERS_PLACED, Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),
    "shipment": (Topic.PAYMENTS_SETTLED,),
    "notification": (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
}
MOST: Final = 0.9
"""Share of the records with which the measurement ends: the last ones are not shared out evenly."""
FEWEST: Final = 4
"""Commits seen, the start among them, with which the time before the first can be left out."""
LOOK_S: Final = 0.05
START_S: Final = 120.0
ASK_S: Final = 2.0
"""A coordinator that is not there yet answers no sooner than a request gives up."""
STANDS_STILL_S: Final = 60.0
STOP_S: Final = 20.0


class Seen(NamedTuple):
    """What the instances had used and done at a moment."""

    at_s: float
    processor_s: float
    done: float


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage alone. connection: to a Kafka with fresh topics of `partitions` each, under its namespace."""

    name: str
    connection: Connection
    partitions: int
    folder: Path

    def measure(self, instances: int, orders: int, announce: Callable[[str], None]) -> PipelineRow:
        """Start the instances, give them the orders at once, see how fast they are done. Raises BenchError."""
        announce(f"{self.name}, {instances} at work: starting")
        backlog = list(_orders(self.connection.namespace, orders))  # made before: they come faster than they are served
        with self._running(instances) as processes:
            self._wait_for_group(processes)
            announce(f"{self.name}, {instances} at work: {orders:,} orders")
            start = self._seen(processes)
            self._fill(backlog)
            wall_s, processor_s, done = self._time(processes, start, orders)
        return PipelineRow(
            stage=self.name,
            instances=instances,
            partitions=self.partitions,
            orders=orders,
            orders_per_s=round(done / wall_s, 1),
            cores=round(processor_s / wall_s, 2),
            ms_per_order=round(1e3 * processor_s / done, 3),
        )

    @contextmanager
    def _running(self, instances: int) -> "Iterator[list[Popen[bytes]]]":
        with ExitStack() as running:
            processes = []
            for number in range(instances):
                told = {
                    "INSTANCE": number,
                    "DATA_DIR": self.folder / self.name,
                    "PIPELINE_PARTITIONS": self.partitions,
                    "PAYMENT_PARTITIONS": self.partitions,
                    "DEMO": "true",
                }
                environ = as_environment(self.connection) | {f"TAILPACK_{key}": str(one) for key, one in told.items()}
                process = start(python_module(f"services.{self.name}"), _environ() | environ, self._log(number))
                running.callback(wait_for_end, process, STOP_S)
                running.callback(process.terminate)
                processes.append(process)
            yield processes

    def _log(self, number: int) -> Path:
        return self.folder / f"{self.name}-{number}.log"

    def _alive(self, processes: "list[Popen[bytes]]") -> None:
        for number, process in enumerate(processes):
            if process.poll() is not None:
                raise BenchError(f"{self.name} {number} ended: {last_log_line(self._log(number))}")

    def _wait_for_group(self, processes: "list[Popen[bytes]]") -> None:
        """Wait until every instance that can have partitions has some."""
        admin = AdminClient(client(self.connection))
        group, give_up_s = qualified(self.connection.namespace, self.name), steady_s() + START_S
        members = min(len(processes), self.partitions)
        while True:
            self._alive(processes)
            try:
                found = admin.describe_consumer_groups([group], request_timeout=ASK_S)[group].result(2 * ASK_S)
                owners = sum(bool(one.assignment.topic_partitions) for one in found.members if one.assignment)
                if found.state is ConsumerGroupState.STABLE and owners == members:
                    return
            except (KafkaException, TimeoutError):
                pass  # the coordinator is not there yet
            if steady_s() > give_up_s:
                raise BenchError(f"{self.name}: not every instance had partitions within {START_S:.0f} s")
            time.sleep(LOOK_S)

    def _fill(self, backlog: "list[dict[Topic, Record]]") -> None:
        own = {"linger.ms": 5, "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000}
        producer = Producer(client(self.connection) | own)
        topics = {topic: qualified(self.connection.namespace, topic) for topic in READS[self.name]}
        for records in backlog:
            for topic, name in topics.items():
                key, value, headers, _ = records[topic]
                producer.produce(name, value, key, headers=headers)
        if left := producer.flush(START_S):
            raise BenchError(f"{self.name}: {left} records were not taken by the broker")

    def _time(self, processes: "list[Popen[bytes]]", start: Seen, orders: int) -> tuple[float, float, float]:
        """Return wall time, processor time (s) and the orders that were done in it.

        Done is what the group has committed, so it is looked at from one commit to another: from the first, or from
        the start where the first has nearly all.
        """
        group = qualified(self.connection.namespace, self.name)
        inputs = [
            TopicPartition(qualified(self.connection.namespace, topic), partition)
            for topic in READS[self.name]
            for partition in range(self.partitions)
        ]
        consumer = Consumer(client(self.connection, group_id=group))  # which asks, and does not join
        commits = [start]
        try:
            while commits[-1].done < MOST * orders:
                self._alive(processes)
                done = sum(max(one.offset, 0) for one in consumer.committed(inputs, ASK_S)) / len(READS[self.name])
                if done > commits[-1].done:
                    commits.append(self._seen(processes, done))
                elif steady_s() - commits[-1].at_s > STANDS_STILL_S:
                    raise BenchError(f"{self.name} stands still at {commits[-1].done:,.0f} of {orders:,} orders")
                time.sleep(LOOK_S)
        except KafkaException as wrong:
            raise BenchError(f"{self.name}: the broker does not tell what is committed: {wrong}") from wrong
        finally:
            consumer.close()
        first, last = commits[1 if len(commits) > FEWEST else 0], commits[-1]
        return last.at_s - first.at_s, last.processor_s - first.processor_s, last.done - first.done

    def _seen(self, processes: "list[Popen[bytes]]", done: float = 0.0) -> Seen:
        times = [psutil.Process(one.pid).cpu_times() for one in processes]
        return Seen(steady_s(), sum(one.user + one.system for one in times), done)


def _orders(run: str, count: int) -> Iterator[dict[Topic, Record]]:
    """Yield for each order what the stages write of it, by topic. All payments are accepted: each has its shipment."""
    made = Orders(run, 1)
    for number in range(count):
        at_us, order, name = now_us(), made.order(number), made.order_id(number)
        placed = order_event(order, at_us, None)(at_us)
        stamps = dict.fromkeys(("intended_us", "placed_us", "accepted_us", "received_us", "done_us"), at_us)
        timeline = Timeline(**stamps, partition=0, offset=number, replica="payment-0")
        payment = PaymentSettled(
            **order.purchase(), payment_id=name, accepted=True, decline_reason=None, risk_score=0.1, timeline=timeline
        )
        shipment = ShipmentScheduled(
            order_id=name,
            payment_id=name,
            shipment_id=name,
            customer=order.customer,
            country=order.country,
            parcel="S",
            carrier="DHL",
            promised_on="2026-01-05",
            timeline=timeline,
        )
        notification = NotificationSent(
            order_id=name,
            payment_id=name,
            shipment_id=name,
            notification_id=name,
            customer=order.customer,
            accepted=True,
            text=f"Your order {name} is on its way",
            timeline=timeline,
        )
        later = {
            Topic.PAYMENTS_SETTLED: payment,
            Topic.SHIPMENTS_SCHEDULED: shipment,
            Topic.NOTIFICATIONS_SENT: notification,
        }
        written = {topic: placed._replace(value=msgspec.json.encode(one), headers=[]) for topic, one in later.items()}
        yield {Topic.ORDERS_PLACED: placed, **written}


def _environ() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
