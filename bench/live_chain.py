"""Payment and Shipment live, on one machine: the scenario's load, one autoscaler for both or one for each, and what
became of every event.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import Consumer, TopicPartition

from autoscaler.live.clients import reader
from bench.handover.readers import NO_ENDS
from bench.scenario import Scenario
from bench.simulation.chain import FIRST, ChainResult, StageResult, summary
from contracts.clock import now_us, steady_s
from contracts.connection import Connection
from contracts.events import PaymentSettled, ShipmentScheduled
from contracts.journal import TickRecord
from contracts.journal_records import entries
from contracts.membership import Work
from contracts.processes import last_log_line, python_module, start, wait_for_end
from contracts.settings import picked
from contracts.topics import Topic, qualified
from contracts.validation import as_environment
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult
from loadgen.spec import DriverSettings
from report.measures import replica_minutes

SCENARIO: Final = "chain-demo"
SHIPMENT: Final = "shipment"
MODULES: Final = {FIRST: "services.payment", SHIPMENT: "services.shipment.replica"}
READS: Final = {FIRST: Topic.PAYMENTS_REQUESTED, SHIPMENT: Topic.PAYMENTS_SETTLED}
READY_S: Final = 300.0
"""In a new checkout a policy is compiled first."""
DRAIN_S: Final = 60.0
STOP_S: Final = 60.0
AHEAD_S: Final = 1.0


class ChainError(Exception):
    """The run did not come to its end; says why."""


class LiveChain:
    """One run. connection: to a Kafka with every topic of a run; behind: the namespace of Shipment's control topics."""

    def __init__(self, scenario: Scenario, connection: Connection, behind: str, folder: Path) -> None:
        """Raise ChainError for stages that have no live service."""
        names = [FIRST, *(stage.name for stage in scenario.stages)]
        if names != list(MODULES):
            raise ChainError(f"{scenario.name}: stages that run live are {', '.join(MODULES)}, in this order")
        if scenario.stages[0].partitions != scenario.pipeline_partitions:
            there = f"{READS[SHIPMENT]} has pipeline_partitions = {scenario.pipeline_partitions}"
            raise ChainError(
                f"{scenario.name}: stages.{SHIPMENT}.partitions = {scenario.stages[0].partitions}: {there}"
            )
        self._scenario = scenario
        self._connection = connection
        self._spaces = spaces = {FIRST: connection.namespace, SHIPMENT: behind}
        self._folder = folder
        within = connection.namespace
        self._settled = _Topic(connection, qualified(within, Topic.PAYMENTS_SETTLED), scenario.pipeline_partitions)
        self._shipped = _Topic(connection, qualified(within, Topic.SHIPMENTS_SCHEDULED), scenario.pipeline_partitions)
        self._journals = {name: _Topic(connection, qualified(spaces[name], Topic.JOURNAL), 1) for name in MODULES}
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
        self._environ["TAILPACK_START_FILE"] = str(folder / "start_at")

    def run(self, announce: Callable[[str], None]) -> tuple[ChainResult, GeneratorResult]:
        """Start everything, send the load, wait for its last event, and measure. Raises ChainError."""
        with self._autoscalers(), self._generator() as generator:
            announce("starting")
            self._wait("first replicas", self._ready, READY_S)
            self._wait("the load generator", (self._folder / READY_FILE).exists, READY_S)
            began_us = now_us() + round(AHEAD_S * 1e6)
            Path(self._environ["TAILPACK_START_FILE"]).write_text(str(began_us))
            announce("running")
            self._wait("the load", lambda: generator.poll() is not None, self._scenario.duration_s + DRAIN_S)
            if not (self._folder / RESULT_FILE).exists():
                raise ChainError(f"the load was not sent: {last_log_line(self._folder / 'generator.log')}")
            sent = GeneratorResult.load(self._folder)
            announce("draining")
            self._wait("the last shipment", lambda: self._all_done(sent.acknowledged), DRAIN_S)
        found = self._measured(began_us)
        for topic in (self._settled, self._shipped, *self._journals.values()):
            topic.close()
        return found, sent

    @contextmanager
    def _autoscalers(self) -> Iterator[None]:
        """Run one autoscaler that is told of all stages, or one for each; at the end their replicas are gone, too."""
        files = [str(self._config(name)) for name in MODULES]
        groups = [files] if self._scenario.chain.coordinated else [[one] for one in files]
        running: list[Popen[bytes]] = []
        try:
            for number, some in enumerate(groups):
                command = [*python_module("autoscaler.live"), *some]
                running.append(start(command, self._environ, self._folder / f"autoscaler-{number}.log"))
            yield
        finally:
            for process in running:
                process.send_signal(signal.SIGINT)
            for process in running:
                wait_for_end(process, STOP_S)

    @contextmanager
    def _generator(self) -> "Iterator[Popen[bytes]]":
        (self._folder / "load.json").write_bytes(msgspec.json.encode(self._scenario.load_spec()))
        settings = DriverSettings(
            load_file=str(self._folder / "load.json"),
            out_dir=str(self._folder),
            start_file=self._environ["TAILPACK_START_FILE"],
        )
        environ = self._environ | as_environment(self._connection) | as_environment(settings)
        process = start(python_module("loadgen.drivers"), environ, self._folder / "generator.log")
        try:
            yield process
        finally:
            process.terminate()
            wait_for_end(process, STOP_S)

    def _config(self, name: str) -> Path:
        """Write the file of a stage, which promises its own share."""
        number = list(MODULES).index(name)
        scenario = self._scenario
        own = scenario if not number else scenario.at_stage(number - 1)
        told = {
            **msgspec.to_builtins(own.autoscaler),
            **msgspec.to_builtins(own.guards),
            "bootstrap_servers": self._connection.bootstrap_servers,
            "namespace": self._spaces[name],
            "topic": qualified(self._connection.namespace, READS[name]),
            "group": qualified(self._connection.namespace, name),
            "replica_module": MODULES[name],
            "replica_prefix": name,
            "state_dir": str(self._folder / name),
            **msgspec.to_builtins(Work(**picked(own.payment, Work))),
            **msgspec.to_builtins(own.speeds()),
            "latency_target_s": scenario.target.latency_target_s * scenario.shares()[number],
            "percentile": 1 - (1 - scenario.target.percentile) / len(MODULES),
        }
        path = self._folder / f"{name}.toml"
        path.write_text("".join(f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in told.items()))
        return path

    def _ready(self) -> bool:
        return all(any(tick.ready_replicas for tick in self._ticks(name)) for name in MODULES)

    def _all_done(self, events: int) -> bool:
        settled, shipped = self._finished()
        return len(settled) == events and len(shipped) == sum(one.accepted for one in settled.values())

    def _finished(self) -> tuple[dict[str, PaymentSettled], dict[str, ShipmentScheduled]]:
        """Return the first record of each order on both topics."""
        settled: dict[str, PaymentSettled] = {}
        shipped: dict[str, ShipmentScheduled] = {}
        for value in self._settled.values():
            payment = msgspec.json.decode(value, type=PaymentSettled)
            settled.setdefault(payment.order_id, payment)
        for value in self._shipped.values():
            shipment = msgspec.json.decode(value, type=ShipmentScheduled)
            shipped.setdefault(shipment.order_id, shipment)
        return settled, shipped

    def _measured(self, began_us: int) -> ChainResult:
        settled, shipped = self._finished()
        whole, payments, shipments = [], [], []
        for order, payment in settled.items():
            done_us = payment.timeline.done_us or 0
            ended_us = done_us
            if order in shipped:
                ended_us = shipped[order].timeline.shipped_us or 0
                shipments.append(ended_us - done_us)
            whole.append(ended_us - payment.timeline.intended_us)
            payments.append(done_us - payment.timeline.intended_us)
        stages = (self._stage(FIRST, payments, began_us), self._stage(SHIPMENT, shipments, began_us))
        return summary(self._scenario, np.array(whole, np.int64), stages)

    def _stage(self, name: str, took_us: Sequence[int], began_us: int) -> StageResult:
        ticks = [tick for tick in self._ticks(name) if tick.at_us < began_us + self._scenario.duration_s * 1_000_000]
        requested = [(tick.at_us, tick.requested_replicas) for tick in ticks]
        return StageResult.of(
            name,
            np.array(took_us, np.int64),
            minutes=replica_minutes(requested, began_us, self._scenario.duration_s),
            peak=max((count for _, count in requested), default=0),
            changes=sum(tick.action != "hold" for tick in ticks),
        )

    def _ticks(self, name: str) -> list[TickRecord]:
        found = entries(self._journals[name].values())
        return [one for one in found if isinstance(one, TickRecord)]

    def _wait(self, what: str, done: Callable[[], bool], within_s: float) -> None:
        give_up_s = steady_s() + within_s
        while not done():
            if steady_s() > give_up_s:
                logs = [f"{log.name}: {said}" for log in self._folder.glob("*.log") if (said := last_log_line(log))]
                raise ChainError(f"{what}: not within {within_s:g} s; {'; '.join(logs)}")
            time.sleep(0.5)


class _Topic:
    """All that a topic holds, read on whenever it is asked for."""

    def __init__(self, connection: Connection, topic: str, partitions: int) -> None:
        self._consumer = Consumer(reader(connection, isolation_level="read_committed") | NO_ENDS)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
        self._values: list[bytes] = []

    def values(self) -> list[bytes]:
        """Return the values of all records so far."""
        while found := self._consumer.consume(2000, 0.2):
            self._values += [value for one in found if one.error() is None and (value := one.value()) is not None]
        return self._values

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()
