"""The generator as a process on a real Kafka: it sends every event once and on time, also during broker faults."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from pathlib import Path

import msgspec
import numpy as np
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource
from kafka_helpers import DEADLINE_S, admin, create_topics, read_all, wait_for

from contracts.events import OrderPlaced
from contracts.topics import PIPELINE_PARTITIONS, Topic, qualified
from loadgen.orders import Orders
from loadgen.result import READY_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology
from report import replace_file
from report.measures import percentile_us
from tailpack.local.broker import Broker
from tailpack.local.ports import free_port

pytestmark = pytest.mark.kafka

ROOT = Path(__file__).parents[2]


def load(topology: Topology, *, duration_s: int = 3, partitions: int = 5) -> LoadSpec:
    return LoadSpec(
        topology=topology, workload="smoke", spacing=Spacing.BURST, split=Split.EVEN, seed=1, duration_s=duration_s,
        partitions=partitions, latency_target_s=0.5,
    )  # fmt: skip


class Generator:
    """`python -m loadgen.drivers` in a folder of its own."""

    def __init__(self, folder: Path, kafka: str, namespace: str, spec: LoadSpec, **settings: str) -> None:
        self.folder = folder
        (folder / "load.json").write_bytes(msgspec.json.encode(spec))
        environment = {
            "BOOTSTRAP_SERVERS": kafka,
            "NAMESPACE": namespace,
            "LOAD_FILE": str(folder / "load.json"),
            "OUT_DIR": str(folder),
            "START_FILE": str(folder / "start_at"),
        } | settings
        self.process = subprocess.Popen(
            [sys.executable, "-m", "loadgen.drivers"],
            cwd=ROOT,
            env=os.environ | {f"TAILPACK_{name}": value for name, value in environment.items()},
            stderr=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> "Generator":
        return self

    def __exit__(self, *failure: object) -> None:
        self.process.kill()
        self.process.communicate()

    def start(self) -> int:
        """Wait until it is ready, give it its start, return that in µs."""
        wait_for((self.folder / READY_FILE).exists, "the generator is ready")
        started_us = (int(time.time()) + 1) * 1_000_000
        (self.folder / "start_at").write_text(str(started_us))
        return started_us

    def wait(self, deadline_s: float = 120) -> int:
        return self.process.wait(deadline_s)

    def log_text(self) -> str:
        """Standard error of the ended process."""
        return self.process.communicate(timeout=10)[1]

    @property
    def result(self) -> GeneratorResult:
        return GeneratorResult.load(self.folder)


def values(headers: list[tuple[str, bytes]]) -> dict[str, int]:
    return {name: int(value) for name, value in headers}


def test_orders_arrive_once_keyed_and_stamped(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 5)
    with Generator(tmp_path, kafka, namespace, load(Topology.PIPELINE)) as generator:
        started_us = generator.start()
        assert generator.wait() == 0
    result = generator.result
    assert (result.scheduled, result.produced, result.acknowledged, result.failed) == (30, 30, 30, 0)
    assert result.started_us == started_us
    assert not result.interrupted
    records = read_all(kafka, namespace, Topic.ORDERS_PLACED)
    orders = {order.order_id: order for order in (Orders(namespace, 1).order(number) for number in range(30))}
    assert len(records) == 30
    assert {record.key().decode() for record in records} == set(orders)
    for record in records:
        assert msgspec.json.decode(record.value(), type=OrderPlaced) == orders[record.key().decode()]
        headers = values(record.headers())
        assert (headers["intended_at"] - started_us) in {0, 1_000_000, 2_000_000}
        assert 0 <= headers["placed_at"] - headers["intended_at"] < 1_000_000
        assert 0 <= headers["partition"] < 5
    assert 1 < len({record.partition() for record in records}) <= PIPELINE_PARTITIONS


def test_a_restart_of_a_killed_broker_loses_and_duplicates_no_event(
    private_broker: Broker, namespace: str, tmp_path: Path
) -> None:
    kafka = private_broker.address()
    assert kafka is not None
    create_topics(kafka, namespace, 3)
    spec = load(Topology.PAYMENT_ONLY, duration_s=9, partitions=3)
    with Generator(tmp_path, kafka, namespace, spec) as generator:
        started_us = generator.start()
        wait_for(lambda: time.time() * 1e6 > started_us + 5_500_000, "the steep part has begun", every_s=0.01)
        private_broker.kill()
        wait_for(lambda: time.time() * 1e6 > started_us + 7_500_000, "bursts met no broker", every_s=0.01)
        private_broker.start()
        assert generator.wait(90) == 0
    result = generator.result
    assert (result.scheduled, result.acknowledged, result.failed) == (290, 290, 0)
    records = read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)
    for partition in range(3):
        found = [record.key().decode() for record in records if record.partition() == partition]
        assert found == [Orders(namespace, 1).order_id(number) for number in range(partition, 290, 3)]


def test_the_web_page_shows_the_load_and_closes_after_it(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, 5)
    port = str(free_port())
    with Generator(tmp_path, kafka, namespace, load(Topology.PIPELINE, duration_s=4), WEB_PORT=port) as generator:
        generator.start()

        def requests_shown() -> int:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/stats/requests", timeout=60) as answer:
                return int(msgspec.json.decode(answer.read())["stats"][-1]["num_requests"])

        wait_for(lambda: requests_shown() >= 20, "two bursts are shown")
        assert generator.wait() == 0
    assert generator.result.complete


def test_a_load_that_is_changed_while_it_is_sent_changes_at_its_second(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    """Nothing is sent from second 5 on, then three times the schedule with one customer. Prepared events stay."""
    create_topics(kafka, namespace, 5)
    spec = load(Topology.PAYMENT_ONLY, duration_s=13)
    with Generator(tmp_path, kafka, namespace, spec) as generator:
        started_us = generator.start()
        for second, (changed_s, *faults) in {
            0.5: (5, "burst 5-13 0"),
            7.0: (11, "burst 5-11 0", "burst 11-13 3", "hot-key 11-13 1"),
        }.items():
            wait_for(lambda until=second: time.time() * 1e6 > started_us + until * 1e6, "second", every_s=0.01)
            changed = msgspec.structs.replace(spec, faults=tuple(faults), changed_s=changed_s)
            replace_file(tmp_path / "load.json", msgspec.json.encode(changed))
        assert generator.wait() == 0
    result, records = generator.result, read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)
    assert result.produced == result.scheduled == result.acknowledged == len({record.key() for record in records})
    seconds = Counter((values(record.headers())["intended_at"] - started_us) // 1_000_000 for record in records)
    counts = spec.schedule().offset_us // 1_000_000
    assert seconds == Counter(counts[counts < 5].tolist()) + Counter(3 * counts[counts >= 11].tolist())
    hot = {record.partition() for record in records if values(record.headers())["intended_at"] >= started_us + 11e6}
    assert len(hot) == 1


@pytest.mark.parametrize(("trace", "named"), [("", "cannot be reached"), ("absent.csv", "absent.csv")])
def test_a_generator_that_cannot_start_prints_one_line(tmp_path: Path, namespace: str, trace: str, named: str) -> None:
    spec = msgspec.structs.replace(load(Topology.PIPELINE), trace=trace)
    with Generator(tmp_path, f"127.0.0.1:{free_port()}", namespace, spec, CONNECT_DEADLINE_S="1") as generator:
        assert generator.wait() == 1
        output = generator.log_text()
    assert named in output
    assert len(output.splitlines()) == 1


def test_a_broker_stall_of_two_seconds_appears_in_the_percentiles(
    private_broker: Broker, namespace: str, tmp_path: Path
) -> None:
    """No coordinated omission: events that are due while the broker stalls count from their due time.

    A client that waited for each answer would have one slow event of 600, and a p99 of milliseconds.
    """
    kafka = private_broker.address()
    assert kafka is not None
    create_topics(kafka, namespace, 3)
    asked = admin(kafka)
    stamped = ConfigEntry("message.timestamp.type", "LogAppendTime", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ConfigResource.Type.TOPIC, qualified(namespace, Topic.PAYMENTS_REQUESTED))
    topic.add_incremental_config(stamped)
    asked.incremental_alter_configs([topic])[topic].result(DEADLINE_S)
    (tmp_path / "even.csv").write_text("second,events\n" + "".join(f"{second},100\n" for second in range(6)))
    spec = msgspec.structs.replace(
        load(Topology.PAYMENT_ONLY, duration_s=6, partitions=3),
        trace=str(tmp_path / "even.csv"), spacing=Spacing.SMOOTH,
    )  # fmt: skip
    with Generator(tmp_path, kafka, namespace, spec) as generator:
        started_us = generator.start()
        wait_for(lambda: time.time() * 1e6 > started_us + 2e6, "a third is sent", every_s=0.01)
        os.kill(private_broker.nodes[1].pid, signal.SIGSTOP)
        frozen_us = time.time() * 1e6
        wait_for(lambda: time.time() * 1e6 > frozen_us + 2e6, "two seconds", every_s=0.01)
        awake_us = time.time() * 1e6
        os.kill(private_broker.nodes[1].pid, signal.SIGCONT)
        assert generator.wait() == 0
    records = read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)
    stamps = [values(record.headers()) for record in records]
    assert sorted(one["intended_at"] - started_us for one in stamps) == [10_000 * number for number in range(600)]
    meanwhile = [one for one in stamps if frozen_us < one["intended_at"] < awake_us]
    assert sum(one["placed_at"] < awake_us for one in meanwhile) > len(meanwhile) / 2, "it went on sending"
    pairs = zip(records, stamps, strict=True)
    latency_us = np.array([1000 * record.timestamp()[1] - stamp["intended_at"] for record, stamp in pairs])
    assert percentile_us(latency_us, 0.99) > 1_800_000
    assert percentile_us(latency_us, 0.9) > 1_200_000
