"""A load that Locust's workers share: every event once, from one schedule; and whoever is missing makes it invalid."""

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

import msgspec
import pytest
from kafka_helpers import create_topics, read_all, wait_for

from bench.scenario import load_scenario
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import PaymentRequested
from contracts.topics import Topic
from loadgen.orders import Orders
from loadgen.result import READY_FILE, GeneratorResult
from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology
from tailpack.local.ports import free_port
from tailpack.local.stack import Stack

pytestmark = pytest.mark.kafka
# W is long, so that a busy machine makes no load invalid.
SPEC = LoadSpec(
    topology=Topology.PAYMENT_ONLY, workload="smoke", spacing=Spacing.BURST, split=Split.EVEN, seed=1, duration_s=6,
    partitions=5, latency_target_s=60,
)  # fmt: skip
EVENTS = 5 * 10 + 60
LOCUSTFILE = Path(__file__).parents[2] / "loadgen" / "drivers" / "locustfile.py"
CHANGED = (
    "import sys, loadgen.drivers.distributed as d; {}; from loadgen.drivers.__main__ import main; sys.exit(main())"
)
ANOTHER_VERSION = CHANGED.format("d.versions = lambda: 'tailpack 9'")
CLOCK_AHEAD = CHANGED.format("ours = d.now_us; d.now_us = lambda: ours() + 50_000")
NEVER_DONE = CHANGED.format(
    "send = d.Follower._report; d.Follower._report = lambda s, k, w: k == d.DONE or send(s, k, w)"
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
    assert result.clock_offset_us is not None
    assert result.complete
    assert result.valid
    check_every_event(kafka, namespace)


def test_a_run_with_load_workers_starts_them_and_stops_them(kafka: str, namespace: str, tmp_path: Path) -> None:
    create_topics(kafka, namespace, SPEC.partitions)
    scenario = load_scenario("smoke", {"topology": "payment-only", "partitions": SPEC.partitions})
    stack = Stack(scenario, Connection(bootstrap_servers=kafka, namespace=namespace), tmp_path)
    try:
        stack.start(SPEC, load_workers=2, only_load=True)
        wait_for((tmp_path / READY_FILE).exists, "all are ready", deadline_s=60)
        stack.start_file.write_text(str(now_us() + 1_000_000))
        ended = [stack.load, *stack.senders]
        wait_for(lambda: all(one.exit_status is not None for one in ended), "the load is sent", deadline_s=60)
    finally:
        stack.stop()
    assert [one.exit_status for one in ended] == [0, 0, 0]
    assert stack.processes() == {}
    result = GeneratorResult.load(tmp_path)
    assert (result.workers, result.complete, result.valid) == (2, True, True)
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


@pytest.mark.parametrize("pressed_stop", [False, True])
def test_locusts_page_starts_the_load_and_ends_with_it(
    kafka: str, namespace: str, tmp_path: Path, pressed_stop: bool
) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        page = f"127.0.0.1:{free_port()}"
        where = ("--web-host", "127.0.0.1", "--web-port", page.partition(":")[2])
        locust = load.start("-m", "locust", "-f", str(LOCUSTFILE), *where, **load.of_master)

        def ask(path: str, **form: int) -> bytes | None:
            try:
                body = urlencode(form).encode() if form else None
                with urllib.request.urlopen(f"http://{page}{path}", body, timeout=10) as answer:
                    return answer.read()
            except OSError:
                return None

        wait_for(lambda: ask("/"), "the page is there", deadline_s=60)
        assert not read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED), "nobody has pressed Start"
        assert b"true" in ask("/swarm", user_count=1, spawn_rate=1)
        if pressed_stop:
            wait_for(lambda: read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED), "the load has begun", deadline_s=60)
            assert b"true" in ask("/stop", now=1)
        assert locust.wait(60) == int(pressed_stop), load.said(locust)
    assert load.result().interrupted is pressed_stop
    if not pressed_stop:
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
    assert not result.valid, "what was sent was on time, but it was not all"
    assert result.lateness_p99_us is not None
    assert result.acknowledged == result.produced <= EVENTS // 2


def test_a_worker_that_never_says_what_it_did_is_not_awaited_for_ever(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        master = load.master(2, DRAIN_DEADLINE_S="0.5")
        load.worker()
        load.worker("-c", NEVER_DONE)
        assert master.wait(90) == 1, load.said(master)
    result = load.result()
    assert "has said nothing of its share for 5.5 s after the last event: the run is invalid" in result.first_error
    assert (result.acknowledged, result.valid) == (EVENTS // 2, False)


def test_a_clock_apart_from_the_masters_is_refused_and_one_that_agrees_is_told(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    with a_load(tmp_path, kafka, namespace) as load:
        master = load.master(2)
        load.worker()
        load.worker("-c", CLOCK_AHEAD)
        assert master.wait(60) == 1
        assert "ms ahead of this master's, at most 2 ms are allowed" in load.result().first_error
    assert read_all(kafka, namespace, Topic.PAYMENTS_REQUESTED) == []


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
