"""Groups of ordinary consumers as processes, load for them, and what their logs prove."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka_helpers import DEADLINE_S, admin, create_topics, end_offsets, wait_for
from live_autoscaler import Autoscaler

from autoscaler.live.foreign.leader import Leader
from autoscaler.live.foreign.members import Replicas
from autoscaler.live.foreign.membership import Membership
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.plan import PlanRecord
from tailpack.local.jars import java, kafka_jars

HERE = Path(__file__).parent
NAMES = ("shop-0", "shop-1", "shop-2")


@cache
def compiled(folder: Path) -> Path:
    compiler = [str(Path(java()).with_name("javac")), "-cp", f"{kafka_jars()}/*", "-d", str(folder)]
    subprocess.run([*compiler, str(HERE / "PlainConsumer.java")], check=True, timeout=DEADLINE_S)
    return folder


@cache
def built(client: str, folder: Path) -> list[str]:
    """Return the command of a client of Go or Node. It is built first; where it cannot be, the test is skipped."""
    run = [str(folder / client)]
    build = ["go", "build", "-C", str(HERE / "go_clients"), "-o", *run, f"./{client.replace('-', '_')}"]
    if client == "kafkajs":
        build = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), "kafkajs@2.2.4"]
        run = ["env", f"NODE_PATH={folder / 'node_modules'}", "node", str(HERE / "kafkajs_consumer.js")]
    if not shutil.which(build[0]):
        pytest.skip(f"{build[0]} is not installed")
    done = subprocess.run(build, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        pytest.skip(f"{client} cannot be built here: {done.stderr.strip()}")
    return run


@dataclass
class ForeignGroup:
    """Consumers of one client library, and events for them. All processes end with its block."""

    kafka: str
    name: str
    folder: Path
    client: str = "librdkafka"
    assignor: str = "range"
    partitions: int = 12
    rate: float = 300.0
    session_ms: int = 6000
    work_s: float = 0.0
    client_id: str = ""
    """Empty: the name of the replica."""
    processes: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    _stop: Event = field(default_factory=Event)
    _read: dict[str, int] = field(default_factory=dict)
    _lines: dict[str, list[tuple[int, str, list[int]]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.topic, self.events = f"{self.name}.events", self.folder / "events"

    def __enter__(self) -> "ForeignGroup":
        self.events.mkdir(parents=True, exist_ok=True)
        self._admin = admin(self.kafka)
        self._admin.create_topics([NewTopic(self.topic, self.partitions, -1)])[self.topic].result(DEADLINE_S)
        self._thread = Thread(target=self._produce, daemon=True)
        self.load = self._thread.start
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for process in self.processes.values():
            process.kill()
            process.wait(DEADLINE_S)

    def command(self) -> list[str]:
        options = {
            "bootstrap.servers": self.kafka, "group.id": self.name, "topic": self.topic, "work.s": str(self.work_s),
            "auto.offset.reset": "earliest", "heartbeat.interval.ms": "100",
            "session.timeout.ms": str(self.session_ms), "partition.assignment.strategy": self.assignor,
        }  # fmt: skip
        options |= {"client.id": self.client_id} if self.client_id else {}
        if self.assignor == "consumer":  # brokers assign, by their own settings
            names = ("heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy")
            options = {key: value for key, value in options.items() if key not in names} | {
                "group.protocol": "consumer"
            }
        if self.client == "java" and self.assignor != "consumer":
            name = {"range": "RangeAssignor", "cooperative-sticky": "CooperativeStickyAssignor"}[self.assignor]
            options["partition.assignment.strategy"] = f"org.apache.kafka.clients.consumer.{name}"
        if self.client == "java":
            start = [java(), "-Xmx96m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp"]
            start += [f"{compiled(self.folder.parent)}:{kafka_jars()}/*", "PlainConsumer"]
        elif self.client != "librdkafka":
            start = built(self.client, self.folder.parent)
        else:
            start = [sys.executable, str(HERE / "plain_consumer.py")]
        return start + [f"{key}={value}" for key, value in options.items()]

    def start(self, *names: str) -> None:
        for name in names:
            environ = {**os.environ, "TAILPACK_REPLICA": name, "LOG_FOLDER": str(self.events)}
            with (self.folder / f"{name}.log").open("ab") as log:
                self.processes[name] = subprocess.Popen(self.command(), env=environ, stdout=log, stderr=log)

    def stop(self, *names: str) -> None:
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
            self.processes.pop(name).wait(DEADLINE_S)

    def unload(self) -> None:
        self._stop.set()
        self._thread.join(DEADLINE_S)

    def _produce(self) -> None:
        producer, number, began_s = Producer({"bootstrap.servers": self.kafka, "linger.ms": 0}), 0, time.monotonic()
        while not self._stop.wait(0.005):
            while number < (time.monotonic() - began_s) * self.rate:
                producer.produce(self.topic, str(time.time_ns() // 1000), partition=number % self.partitions)
                number += 1
            producer.poll(0)
        assert producer.flush(DEADLINE_S) == 0

    def logs(self) -> dict[str, list[tuple[int, str, list[int]]]]:
        """Return consumer → the lines of its log. Only new lines are read, so that asking often costs little."""
        for file in sorted(self.events.iterdir()):
            with file.open("rb") as log:
                log.seek(self._read.get(file.name, 0))
                whole = b"".join(line for line in log if line.endswith(b"\n"))
            self._read[file.name] = self._read.get(file.name, 0) + len(whole)
            lines = map(str.split, whole.decode().splitlines())
            self._lines.setdefault(file.name, []).extend((int(at), kind, [*map(int, of)]) for at, kind, *of in lines)
        return self._lines

    def owners(self, pids: Mapping[str, int] | None = None) -> dict[int, str]:
        """Return partition → consumer, by the callbacks of the consumers that run. pids: their processes, if known."""
        known = {name: process.pid for name, process in self.processes.items()} if pids is None else pids
        running = {f"{name}.{pid}" for name, pid in known.items()}
        owners: dict[int, str] = {}
        for name, lines in self.logs().items():
            owners |= dict.fromkeys(held(lines)[0], name.rpartition(".")[0]) if name in running or not running else {}
        return owners

    def served(self) -> list[tuple[int, int]]:
        """Stop the load. Wait until each event was served, and return every (partition, offset) as often as it was."""
        self.unload()
        ends = end_offsets(self.kafka, self.topic)
        expected = {(number, offset) for number, end in enumerate(ends) for offset in range(end)}

        wait_for(lambda: expected <= {*self.handled()}, f"{len(expected)} events served", deadline_s=180)
        return self.handled()

    def handled(self) -> list[tuple[int, int]]:
        return [(at[0], at[1]) for lines in self.logs().values() for _, kind, at in lines if kind == "E"]

    def events_after_revocation(self) -> int:
        return sum(held(lines)[1] for lines in self.logs().values())


def held(lines: list[tuple[int, str, list[int]]]) -> tuple[set[int], int]:
    """Return the partitions that a consumer owns at the end of its log, and its events in partitions not owned then."""
    owned, strange = set[int](), 0
    for _, kind, numbers in lines:
        owned = owned | {*numbers} if kind == "A" else owned - {*numbers} if kind in "RL" else owned
        strange += kind == "E" and numbers[0] not in owned
    return owned, strange


def plan(epoch: int, assignment: dict[int, str]) -> PlanRecord:
    return PlanRecord(epoch=epoch, at_us=1, replicas=(*{*assignment.values()},), assignment=assignment, reason="test")


def settings_of(topic: str, group: str, **more: Any) -> AutoscalerSettings:
    own = {"consumers": "led", "heartbeat_s": 0.3, "led_protocols": ("range", "cooperative-sticky")} | more
    return AutoscalerSettings(
        policy="static", state_dir="state", topic=topic, group=group, replica_command="any", **own
    )


@contextmanager
def leading(
    group: ForeignGroup,
    take_over: str = "wait",
    lines: list[str] | None = None,
    connection: Connection | None = None,
    **more: Any,
) -> Iterator[Leader]:
    """Lead a group. connection: None: that of the group. more: settings."""
    settings = settings_of(group.topic, group.name, take_over=take_over, **more)
    at = connection or Connection(bootstrap_servers=group.kafka)
    leader = Leader(at, settings, [].append if lines is None else lines.append)
    leader.start()
    try:
        yield leader
    finally:
        leader.close(leave=False)


def carried_out(
    leader: Membership,
    group: ForeignGroup,
    record: PlanRecord,
    names: Sequence[str] = NAMES,
    *,
    deadline_s: float = DEADLINE_S,
) -> bool:
    """Return true once the consumers own what the plan gives them."""
    leader.carry_out(record, Replicas(dict.fromkeys(names, "")))
    taken = lambda: leader.view.epoch == record.epoch  # noqa: E731
    wait_for(taken, f"plan {record.epoch}", every_s=0.01, deadline_s=deadline_s)
    owners = lambda: group.owners() == record.assignment  # noqa: E731
    return bool(wait_for(owners, f"owners by plan {record.epoch}", every_s=0.02, deadline_s=deadline_s))


def planned(group: ForeignGroup, namespace: str, consumers: str, **more: str) -> Autoscaler:
    """Return an autoscaler of the group, not started yet. more: settings, TAILPACK_ left out."""
    create_topics(group.kafka, namespace, 1)
    settings = {
        "CONSUMERS": consumers, "TOPIC": group.topic, "GROUP": group.name, "REPLICA_PREFIX": "shop",
        "HEARTBEAT_S": "0.3",
        "REPLICA_COMMAND": shlex.join(group.command()), "COMMIT_AGE_S": "0.5", "LATENCY_TARGET_S": "2",
    }  # fmt: skip
    environ = {f"TAILPACK_{name}": value for name, value in (settings | more).items()}
    environ["LOG_FOLDER"] = str(group.events)
    return Autoscaler(group.kafka, namespace, group.folder / "state", partitions=group.partitions, more=environ)


def rebalances(group: ForeignGroup) -> int:
    return sum(kind == "A" for lines in group.logs().values() for _, kind, _ in lines)
