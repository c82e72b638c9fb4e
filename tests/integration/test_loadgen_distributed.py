"""A load that Locust's workers share: every event once, from one schedule; and whoever is missing makes it invalid."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from kafka_helpers import create_topics, read_all, wait_for

from contracts.events import PaymentRequested
from contracts.topics import Topic
from loadgen.orders import Orders
from loadgen.result import READY_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology
from tailpack.local.ports import free_port

pytestmark = pytest.mark.kafka
SPEC = LoadSpec(
    topology=Topology.PAYMENT_ONLY, workload="smoke", spacing=Spacing.BURST, split=Split.EVEN, seed=1, duration_s=6,
    partitions=5, latency_target_s=0.5,
)  # fmt: skip
EVENTS = 5 * 10 + 60
LOCUSTFILE = Path(__file__).parents[2] / "loadgen" / "drivers" / "locustfile.py"
ANOTHER_VERSION = (
    "import sys, loadgen.drivers.distributed as d; d.versions = lambda: 'tailpack 9';"
    "from loadgen.drivers.__main__ import main; sys.exit(main())"
)


class Load:
    """A master and its workers as processes; whatever still runs at the end is killed."""

    def __init__(self, folder: Path, kafka: str, namespace: str) -> None:
        self.folder, self.address = folder, f"127.0.0.1:{free_port()}"
        (folder / "load.json").write_bytes(msgspec.json.encode(SPEC))
        self.of_all = {"BOOTSTRAP_SERVERS": kafka, "NAMESPACE": namespace}
        self.of_master = {"LOAD_FILE": str(folder / "load.json"), "OUT_DIR": str(folder)}
        self.processes: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, **settings: str) -> "subprocess.Popen[bytes]":
        environ = os.environ | {f"TAILPACK_{name}": value for name, value in {**self.of_all, **settings}.items()}
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            self.processes.append(subprocess.Popen([sys.executable, *command], env=environ, stdout=log, stderr=log))
        return self.processes[-1]

    def said(self, process: "subprocess.Popen[bytes]") -> str:
        """What it printed."""
        return (self.folder / f"{self.processes.index(process)}.log").read_text()

    def master(self, workers: int, **settings: str) -> "subprocess.Popen[bytes]":
        told = {**self.of_master, "WORKERS": str(workers), "LISTEN": self.address, **settings}
        return self.start("-m", "loadgen.drivers", **told)

    def worker(self, *command: str) -> "subprocess.Popen[bytes]":
        return self.start(*(command or ("-m", "loadgen.drivers")), MASTER=self.address)

    def result(self) -> GeneratorResult:
        return GeneratorResult.load(self.folder)


@contextmanager
def a_load(tmp_path: Path, kafka: str, namespace: str) -> Iterator[Load]:
    create_topics(kafka, namespace, SPEC.partitions)
    load = Load(tmp_path, kafka, namespace)
    try:
        yield load
    finally:
        for process in load.processes:
            process.kill()
            process.wait()


def check_every_event(kafka: str, namespace: str) -> None:
    """Every event of the schedule came once, in the partition and with the intended time that it has there."""
    schedule, orders = SPEC.schedule(), Orders(namespace, SPEC.seed)
    records = read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED)
    found = {record.key().decode(): record for record in records}
    assert len(records) == len(found) == EVENTS
    intended = Counter()
    for number in range(EVENTS):
        record = found[orders.order_id(number)]
        assert record.partition() == schedule.partition[number]
        at_us = msgspec.json.decode(record.value(), type=PaymentRequested).timeline.intended_us
        intended[at_us - int(schedule.offset_us[number])] += 1
    assert len(intended) == 1, "all count from one second 0"


def test_two_workers_send_every_event_once(kafka: str, namespace: str, tmp_path: Path) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        master = load.master(2)
        workers = [load.worker(), load.worker()]
        assert master.wait(60) == 0, load.said(master)
        assert [worker.wait(20) for worker in workers] == [0, 0]
    result = load.result()
    assert (result.scheduled, result.produced, result.acknowledged) == (EVENTS,) * 3
    assert (result.workers, result.failed, result.first_error, result.interrupted) == (2, 0, None, False)
    assert result.complete
    check_every_event(kafka, namespace)


def test_locusts_own_command_line_does_the_same(kafka: str, namespace: str, tmp_path: Path) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        host, port = load.address.split(":")
        locust = ("-m", "locust", "-f", str(LOCUSTFILE))
        master = load.start(
            *locust, "--master", "--expect-workers", "2", "--headless", "-u", "2", "--master-bind-port", port,
            **load.of_master, LISTEN=load.address,
        )  # fmt: skip
        for _ in range(2):
            load.start(*locust, "--worker", "--master-host", host, "--master-port", port)
        assert master.wait(60) == 0, load.said(master)
        for worker in load.processes[1:]:
            worker.wait(30)
    assert load.result().complete
    check_every_event(kafka, namespace)


def test_a_worker_that_dies_is_named_and_makes_the_load_invalid(kafka: str, namespace: str, tmp_path: Path) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        master = load.master(2, START_FILE=str(tmp_path / "start_at"))
        workers = [load.worker(), load.worker()]
        wait_for((tmp_path / READY_FILE).exists, "all are ready", deadline_s=60)
        (tmp_path / "start_at").write_text(str((int(time.time()) + 1) * 1_000_000))
        wait_for(lambda: read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED), "the load has begun")
        workers[0].kill()
        assert master.wait(60) == 1
        said = load.said(master)
    result = load.result()
    assert "has died" in said
    assert "of 2 (" in result.first_error
    assert not result.complete
    assert result.acknowledged == result.produced <= EVENTS // 2


def test_a_signal_ends_master_and_workers_and_keeps_what_was_sent(
    kafka: str, namespace: str, tmp_path: Path
) -> None:  # fmt: skip
    with a_load(tmp_path, kafka, namespace) as load:
        master = load.master(2)
        workers = [load.worker(), load.worker()]
        wait_for(lambda: read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED), "the load has begun", deadline_s=60)
        master.send_signal(signal.SIGINT)
        assert master.wait(30) == 1
        assert [worker.wait(30) for worker in workers] == [1, 1]
    result = load.result()
    assert result.interrupted
    assert 0 < result.acknowledged == result.produced < EVENTS


def test_what_keeps_workers_from_it_is_said_in_a_line(kafka: str, namespace: str, tmp_path: Path) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        master = load.master(2, CONNECT_DEADLINE_S="4")
        load.worker()
        assert master.wait(60) == 1
        assert f"1 of 2 load workers came to {load.address} within 4 s" in load.result().first_error

        master = load.master(1)
        load.worker("-c", ANOTHER_VERSION)
        assert master.wait(60) == 1
        assert "1 of 1" in load.result().first_error
        assert "has tailpack 9 and would send another schedule" in load.result().first_error
        assert "Traceback" not in load.said(master)
    assert read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED) == []
