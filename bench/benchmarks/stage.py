"""Measure one stage of the pipeline while its processes serve a backlog, or the whole pipeline under a load."""

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

import msgspec
import psutil
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, Producer, TopicPartition
from typer import Argument, Option

from autoscaler.live.kafka import describe_group
from bench import BenchError
from bench.benchmark import QuickBenchmark, Row, Tools, check, environ_of, time_option
from bench.benchmarks.report import SAMPLE_S, tailpack
from contracts.children import Child, python_module
from contracts.clock import monotonic_s, now_us
from contracts.connection import Connection
from contracts.events import Timeline
from contracts.preflight import client_config
from contracts.settings import unknown_name
from contracts.topics import Group, Topic, qualified
from contracts.waiting import until
from loadgen.orders import Orders, Record, order_event, payment_event
from report.result import Result

MEASURED_BACKLOG_SHARE: Final = 0.9
"""The measurement ends when this share of the backlog is done, because the last records are distributed unevenly."""
MIN_COMMITS: Final = 4
"""If more samples than this exist (start included), the time before the first commit is not measured."""
START_S: Final = 120.0
STALL_TIMEOUT_S: Final = 60.0
REQUEST_S: Final = 2.0
STOP_S: Final = 20.0
READS: Final[dict[str, tuple[Topic, ...]]] = {
    Group.ORDER: (Topic.ORDERS_PLACED, Topic.PAYMENTS_SETTLED, Topic.NOTIFICATIONS_SENT),
    Group.PAYMENT: (Topic.PAYMENTS_REQUESTED,),
    Group.SHIPMENT: (Topic.PAYMENTS_SETTLED,),
    Group.NOTIFICATION: (Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED),
}
DEMO: Final = "demo"
NAMES: Final = (DEMO, *READS)
WARM_UP_S: Final = 12.0
"""Time in which the load rises and nothing is measured, because replicas start and a new JVM uses more CPU."""
MODULE: Final = re.compile(r"(kafka)\.Kafka|services\.(\w+)|(autoscaler)\.live|(loadgen)\.drivers")
PROCESSES: Final = ("kafka", "order", "payment", "shipment", "notification", "autoscaler", "loadgen", "tailpack")
"""Names of the processes. All replicas of Payment count as one; `tailpack` starts and watches the others."""


class _Sample(NamedTuple):
    at_s: float
    cpu_s: float
    done: float


@dataclass(kw_only=True)
class Stage(QuickBenchmark):
    """Measure one service on a backlog, or the cores of the demo."""

    name: Annotated[str, Argument(help=f"Stage to measure: one of {', '.join(NAMES)}.")]
    instances: Annotated[str, Option(help="Numbers of processes to measure, separated by commas.")] = "1"
    rate: Annotated[str, Option(help="Orders/s of the demo, one run for each, separated by commas.")] = "15,98"
    partitions: Annotated[int, Option(help="Partitions of each topic.", min=1, max=1_000)] = 4
    records: Annotated[
        int, Option(help="Number of orders in the backlog; 0: 20,000, or 1,500 with --quick.", min=0)
    ] = 0
    service_time: Annotated[float, time_option("Time that Payment needs to serve one event.")] = 0.005

    def cases(self) -> Sequence[str]:
        """Return the numbers of processes, or the rates of the demo. Raises ValueError for invalid options."""
        if self.name not in NAMES:
            raise ValueError(f"stage {self.name!r} is {unknown_name(self.name, NAMES)}")
        counts = (self.rate if self.name == DEMO else self.instances).split(",")
        if any(int(count) < 1 for count in counts):
            raise ValueError(f"{','.join(counts)}: must be 1 or more, separated by commas")
        return counts

    def measure(self, case: str, tools: Tools) -> Row:
        """Measure this number of processes, or the demo at this rate, on a new broker."""
        if self.name == DEMO:
            return _measure_demo(int(case), 10.0 if self.quick else 45.0)
        with tools.kafka("stage", self.partitions, self.partitions) as connection, TemporaryDirectory() as folder:
            return self._serve(connection, Path(folder), int(case), tools)

    def _serve(self, connection: Connection, folder: Path, instances: int, tools: Tools) -> Row:
        orders = self.records or (1_500 if self.quick else 20_000)
        backlog = list(_orders(connection.namespace, orders, self.partitions))  # in advance, to send it fast
        tools.announce(status=f"{self.name}, {instances} processes, {orders:,} orders")
        with ExitStack() as running:
            processes = [self._start(running, connection, folder, number) for number in range(instances)]
            members = min(instances, self.partitions)
            until(lambda: check(processes) and self._owners(connection) == members, START_S, "all own partitions")
            start = _take_sample(processes, 0)
            self._fill(connection, backlog)
            commits = self._commits(connection, processes, start, orders)
        first, last = commits[1 if len(commits) > MIN_COMMITS else 0], commits[-1]
        wall_s, cpu_s, done = last.at_s - first.at_s, last.cpu_s - first.cpu_s, last.done - first.done
        return {
            "stage": self.name,
            "instances": instances,
            "partitions": self.partitions,
            "orders": orders,
            "orders_per_s": round(done / wall_s, 1),
            "cores": round(cpu_s / wall_s, 2),
            "ms_per_order": round(1e3 * cpu_s / done, 3),
        }

    def _start(self, running: ExitStack, connection: Connection, folder: Path, number: int) -> Child:
        name = f"{self.name}-{number}"
        topics = {"pipeline_partitions": self.partitions, "payment_partitions": self.partitions}
        own = {"replica": name, "instance": number, "data_dir": folder / self.name, "demo": "true"}
        environ = environ_of(connection, service_time_s=self.service_time, **own, **topics)
        child = Child(name, python_module(f"services.{self.name}"), environ, folder / f"{name}.log")
        child.start()
        running.callback(child.wait, STOP_S)
        running.callback(child.terminate)  # called first
        return child

    def _owners(self, connection: Connection) -> int:
        """Return the number of members that own partitions; 0 if the group is not stable or its state is unknown."""
        found = describe_group(connection, qualified(connection.namespace, self.name))
        if found is None or found.state is not ConsumerGroupState.STABLE:
            return 0
        return sum(bool(member.assignment and member.assignment.topic_partitions) for member in found.members)

    def _fill(self, connection: Connection, backlog: list[dict[Topic, Record]]) -> None:
        own = {"linger.ms": 5, "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000}
        producer = Producer(client_config(connection) | own)
        for records in backlog:
            for topic in READS[self.name]:
                key, value, headers, partition = records[topic]
                producer.produce(qualified(connection.namespace, topic), value, key, partition, headers=headers)
        if unsent := producer.flush(START_S):
            raise BenchError(f"{self.name}: the broker did not accept {unsent} records within {START_S:.0f} s")

    def _commits(self, connection: Connection, processes: list[Child], start: _Sample, orders: int) -> list[_Sample]:
        """Return samples at the start and at each observed commit, until most of the backlog is committed."""
        inputs = [
            TopicPartition(qualified(connection.namespace, topic), partition)
            for topic in READS[self.name]
            for partition in range(self.partitions)
        ]
        commits = [start]
        consumer = Consumer(client_config(connection, group_id=qualified(connection.namespace, self.name)))
        try:
            while commits[-1].done < MEASURED_BACKLOG_SHARE * orders:
                check(processes)
                places = consumer.committed(inputs, REQUEST_S)
                done = sum(max(place.offset, 0) for place in places) / len(READS[self.name])
                if done > commits[-1].done:
                    commits.append(_take_sample(processes, done))
                elif monotonic_s() - commits[-1].at_s > STALL_TIMEOUT_S:
                    raise BenchError(f"{self.name} stalled at {commits[-1].done:,.0f} of {orders:,} orders")
                time.sleep(0.05)
        except KafkaException as error:
            raise BenchError(f"{self.name}: the broker did not return committed offsets: {error}") from error
        finally:
            consumer.close()
        return commits


def _take_sample(processes: Sequence[Child], done: float) -> _Sample:
    return _Sample(monotonic_s(), sum(sum(psutil.Process(each.pid).cpu_times()[:2]) for each in processes), done)


def _orders(run: str, count: int, partitions: int) -> Iterator[dict[Topic, Record]]:
    """Yield the records of all stages for each order, by topic. Every payment is accepted and has a shipment."""
    orders = Orders(run, 1)
    for number in range(count):
        at_us, order, name = now_us(), orders.order(number), orders.order_id(number)
        placed = order_event(order, at_us, None)(at_us)
        requested = payment_event(order, at_us, number % partitions)(at_us)
        stamps = dict.fromkeys(("intended_us", "placed_us", "accepted_us", "received_us", "done_us"), at_us)
        later = {  # fields of a payment, a shipment and a notification together
            **order.purchase(),
            **dict.fromkeys(("payment_id", "shipment_id", "notification_id"), name),
            **{"accepted": True, "decline_reason": None, "risk_score": 0.1, "text": f"Your order {name}"},
            **{"country": order.country, "parcel": "S", "carrier": "DHL", "promised_on": "2026-01-05"},
            "timeline": Timeline(**stamps, partition=0, offset=number, replica="payment-0"),
        }
        record = placed._replace(value=msgspec.json.encode(later), headers=[])
        behind = dict.fromkeys((Topic.PAYMENTS_SETTLED, Topic.SHIPMENTS_SCHEDULED, Topic.NOTIFICATIONS_SENT), record)
        yield {Topic.ORDERS_PLACED: placed, Topic.PAYMENTS_REQUESTED: requested, **behind}


def _measure_demo(rate: int, seconds: float) -> Row:
    """Run the demo with this rate of orders at random times, and return cores and latencies. Raises BenchError."""
    random = Random(1)
    samples = list[tuple[float, dict[tuple[int, str], float]]]()
    with TemporaryDirectory() as temporary:
        trace, whole_s = Path(temporary, "trace.csv"), round(WARM_UP_S + seconds + 4 * SAMPLE_S)
        rates = [round(rate * min(1.0, (second + 1) / WARM_UP_S)) for second in range(whole_s)]
        orders = sorted((at + random.random(), random.randrange(9)) for at, n in enumerate(rates) for _ in range(n))
        trace.write_text("at_s,partition\n" + "".join(f"{at_s},{number}\n" for at_s, number in orders))

        def sample(top: psutil.Process) -> None:
            for started_at in Path(temporary).glob("*/start_at"):
                if WARM_UP_S <= (now_us() - int(started_at.read_text())) / 1e6 <= WARM_UP_S + seconds:
                    samples.append((monotonic_s(), _cpu_s(top)))

        tailpack(temporary, sample, "run", "demo", "--trace", str(trace), "--out", temporary)
        result = Result.load(next(Path(temporary).glob("demo-*")))
    (whole,) = (stage for stage in result.stages if stage.stage == "end-to-end")
    latencies = {"end_to_end_p50_s": whole.p50_s, "end_to_end_p99_s": whole.p99_s, "in_sla": result.in_sla}
    return {"stage": "demo", "rate_per_s": rate} | _cores(samples) | latencies


def _cpu_s(top: psutil.Process) -> dict[tuple[int, str], float]:
    """Return pid and name of the process and its descendants → CPU time, s. A process that ends is left out."""
    found = {}
    for process in (top, *top.children(recursive=True)):
        with suppress(psutil.Error):
            module = MODULE.search(" ".join(process.cmdline()))
            name = next(filter(None, module.groups())) if module else PROCESSES[-1]
            found[process.pid, name] = sum(process.cpu_times()[:2])
    return found


def _cores(samples: Sequence[tuple[float, dict[tuple[int, str], float]]]) -> Row:
    (began_s, first), (ended_s, _) = samples[0], samples[-1]
    if "kafka" not in {name for _, name in first}:
        raise BenchError("the demo used the broker of `tailpack kafka start`; stop it, and measure again")
    last = {process: cpu_s for _, found in samples for process, cpu_s in found.items()}
    cores = dict.fromkeys(PROCESSES, 0.0)
    for (pid, name), cpu_s in last.items():
        cores[name] += (cpu_s - first.get((pid, name), 0.0)) / (ended_s - began_s)
    return {f"{name}_cores": round(each, 3) for name, each in cores.items()} | {"cores": round(sum(cores.values()), 3)}
