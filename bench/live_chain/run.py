"""A scenario's stages live, on one machine: its load, one autoscaler for all or one for each, and what became of every
event.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import Popen
from typing import Final

import msgspec

from bench import BenchError
from bench.live_chain.outputs import NOTIFICATION, SERVICES, Log, Outputs
from bench.scenario import Scenario
from bench.simulation.chain import FIRST, ChainResult, StageResult, summary
from contracts.children import last_log_line, python_module, start, wait_for_end
from contracts.clock import now_us, steady_s
from contracts.connection import Connection
from contracts.journal import TickRecord, Unfolder
from contracts.membership import Work
from contracts.settings import picked
from contracts.topics import Topic, qualified
from contracts.validation import as_environment
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult
from loadgen.spec import DriverSettings
from report.measures import IntArray, replica_minutes

DECLINED: Final = "declined"
"""Beside a scaled Notification, which reads shipments: who tells of declined payments."""
READY_S: Final = 300.0
"""In a new checkout a policy is compiled first."""
DRAIN_S: Final = 60.0
STOP_S: Final = 60.0
AHEAD_S: Final = 1.0


def live_stages(scenario: Scenario) -> list[str]:
    """Return the names of a scenario's stages, the first included. Raises BenchError: one has no live service."""
    names = [FIRST, *(stage.name for stage in scenario.stages)]
    if len(names) == 1 or names != list(SERVICES)[: len(names)]:
        raise BenchError(f"{scenario.name}: stages that run live are {', '.join(SERVICES)}, in this order, two or more")
    for stage in scenario.stages:
        if stage.partitions != scenario.pipeline_partitions:
            there = f"{SERVICES[stage.name].reads} has pipeline_partitions = {scenario.pipeline_partitions}"
            raise BenchError(f"{scenario.name}: stages.{stage.name}.partitions = {stage.partitions}: {there}")
    return names


class LiveChain:
    """One run. connection: to a Kafka with every topic of a run; `behind` needs control topics, too."""

    def __init__(self, scenario: Scenario, connection: Connection, folder: Path) -> None:
        """Raise BenchError as `live_stages` does."""
        self._names = names = live_stages(scenario)
        self._scenario = scenario
        self._connection = connection
        self._folder = folder
        helpers = [DECLINED] if NOTIFICATION in names else []
        within = connection.namespace
        self._spaces = {FIRST: within} | {name: qualified(within, name) for name in [*names[1:], *helpers]}
        self._environ = {name: value for name, value in os.environ.items() if not name.startswith("TAILPACK_")}
        self._environ["TAILPACK_START_FILE"] = str(folder / "start_at")

    @property
    def behind(self) -> list[str]:
        """Namespaces of the groups behind the first."""
        return list(self._spaces.values())[1:]

    def run(self, announce: Callable[[str], None]) -> tuple[ChainResult, GeneratorResult, int]:
        """Start everything, send the load, wait for its last event, and measure; return also how many records repeat.

        Raises BenchError.
        """
        self._outputs = Outputs(self._connection, self._names, self._scenario.pipeline_partitions)
        self._journals = {name: _Ticks(self._connection, self._spaces[name]) for name in self._names}
        with self._autoscalers(), self._teller() as teller_ready, self._generator() as generator:
            announce("starting")
            self._wait("first replicas", lambda: self._ready() and teller_ready(), READY_S)
            self._wait("the load generator", (self._folder / READY_FILE).exists, READY_S)
            began_us = now_us() + round(AHEAD_S * 1e6)
            Path(self._environ["TAILPACK_START_FILE"]).write_text(str(began_us))
            announce("running")
            self._wait("the load", lambda: generator.poll() is not None, self._scenario.duration_s + DRAIN_S)
            if not (self._folder / RESULT_FILE).exists():
                raise BenchError(f"the load was not sent: {last_log_line(self._folder / 'generator.log')}")
            sent = GeneratorResult.load(self._folder)
            announce("draining")
            self._wait("the last event", lambda: self._outputs.complete(sent.acknowledged), DRAIN_S)
        took_us, by_stage = self._outputs.took_us()
        stages = [self._stage(name, took, began_us) for name, took in by_stage.items()]
        self._outputs.close()
        for journal in self._journals.values():
            journal.close()
        return summary(self._scenario, took_us, stages), sent, self._outputs.repeated

    @contextmanager
    def _autoscalers(self) -> Iterator[None]:
        """Run one autoscaler that is told of all stages, or one for each; at the end their replicas are gone, too."""
        files = [str(self._config(number, name)) for number, name in enumerate(self._names)]
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
    def _teller(self) -> Iterator[Callable[[], bool]]:
        """Run who tells of declined payments, where the chain ends with Notification; yield what says it is there."""
        if DECLINED not in self._spaces:
            yield lambda: True
            return
        told = {
            "REPLICA": f"{DECLINED}-0",
            "NAMESPACE": self._spaces[DECLINED],
            "TOPIC": qualified(self._connection.namespace, Topic.PAYMENTS_SETTLED),
            "GROUP": self._spaces[DECLINED],
            "SERVICE_TIME_S": 0,
            "DRAIN_S": 0,
        }
        environ = self._environ | as_environment(self._connection)
        environ |= {f"TAILPACK_{key}": str(value) for key, value in told.items()}
        command = python_module(SERVICES[NOTIFICATION].module)
        with (
            closing(Log(self._connection, qualified(self._spaces[DECLINED], Topic.PROGRESS), 1)) as progress,
            self._process(command, environ, self._folder / f"{DECLINED}.log"),
        ):
            yield lambda: any(True for _ in progress.fresh())

    @contextmanager
    def _generator(self) -> "Iterator[Popen[bytes]]":
        (self._folder / "load.json").write_bytes(msgspec.json.encode(self._scenario.load_spec()))
        settings = DriverSettings(
            load_file=str(self._folder / "load.json"),
            out_dir=str(self._folder),
            start_file=self._environ["TAILPACK_START_FILE"],
        )
        environ = self._environ | as_environment(self._connection) | as_environment(settings)
        with self._process(python_module("loadgen.drivers"), environ, self._folder / "generator.log") as process:
            yield process

    @contextmanager
    def _process(self, command: list[str], environ: dict[str, str], log: Path) -> "Iterator[Popen[bytes]]":
        process = start(command, environ, log)
        try:
            yield process
        finally:
            process.terminate()
            wait_for_end(process, STOP_S)

    def _config(self, number: int, name: str) -> Path:
        """Write the file of a stage, which promises its own share."""
        scenario = self._scenario
        own = scenario if not number else scenario.at_stage(number - 1)
        told = {
            **msgspec.to_builtins(own.autoscaler),
            **msgspec.to_builtins(own.guards),
            "bootstrap_servers": self._connection.bootstrap_servers,
            "namespace": self._spaces[name],
            "topic": qualified(self._connection.namespace, SERVICES[name].reads),
            "group": qualified(self._connection.namespace, name),
            "replica_module": SERVICES[name].module,
            "replica_prefix": name,
            "state_dir": str(self._folder / name),
            **msgspec.to_builtins(Work(**picked(own.payment, Work))),
            **msgspec.to_builtins(own.speeds()),
            "latency_target_s": self._within_s(number),
            "percentile": 1 - (1 - scenario.target.percentile) / len(self._names),
        }
        path = self._folder / f"{name}.toml"
        path.write_text("".join(f"{key} = {msgspec.json.encode(value).decode()}\n" for key, value in told.items()))
        return path

    def _within_s(self, number: int) -> float:
        return self._scenario.target.latency_target_s * self._scenario.shares()[number]

    def _ready(self) -> bool:
        return all(any(tick.ready_replicas for tick in one.all()) for one in self._journals.values())

    def _stage(self, name: str, took_us: IntArray, began_us: int) -> StageResult:
        until_us = began_us + self._scenario.duration_s * 1_000_000
        ticks = [tick for tick in self._journals[name].all() if tick.at_us < until_us]
        requested = [(tick.at_us, tick.requested_replicas) for tick in ticks]
        return StageResult.of(
            name,
            took_us,
            within_s=self._within_s(self._names.index(name)),
            minutes=replica_minutes(requested, began_us, self._scenario.duration_s),
            peak=max((count for _, count in requested), default=0),
            changes=sum(tick.action != "hold" for tick in ticks),
        )

    def _wait(self, what: str, done: Callable[[], bool], within_s: float) -> None:
        give_up_s = steady_s() + within_s
        while not done():
            if steady_s() > give_up_s:
                logs = [f"{log.name}: {said}" for log in self._folder.glob("*.log") if (said := last_log_line(log))]
                raise BenchError(f"{what}: not within {within_s:g} s; {'; '.join(logs)}")
            time.sleep(0.5)


class _Ticks:
    """The ticks of a journal so far."""

    def __init__(self, connection: Connection, namespace: str) -> None:
        self._log = Log(connection, qualified(namespace, Topic.JOURNAL), 1)
        self._unfolder = Unfolder()
        self._ticks: list[TickRecord] = []

    def all(self) -> list[TickRecord]:
        """Return them, those that came meanwhile among them."""
        found = map(self._unfolder.entry, self._log.fresh())
        self._ticks += [one for one in found if isinstance(one, TickRecord)]
        return self._ticks

    def close(self) -> None:
        """Leave the brokers."""
        self._log.close()
