"""Run the processes of a run on one machine: services, load generator, and the autoscaler, which starts replicas."""

import os
import shlex
import signal
import time
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from autoscaler.live.launcher import stop_orphans
from autoscaler.live.launchers.processes import ProcessLauncher, read_pid_files
from bench.scenario import Scenario
from contracts.children import limit_log
from contracts.connection import Connection
from contracts.validation import as_environment
from loadgen.children import STOP_DEADLINE_S, Child, python_module
from loadgen.spec import LoadSpec, Topology
from tailpack.local.jars import payment_consumer
from tailpack.local.ports import free_port

HEALTH_TIMEOUT_S: Final = 1.0
REPLICA_DEADLINE_S: Final = 5.0
START_ATTEMPTS: Final = 3
RESTART_BACKOFF_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
FAUST_SERVICES: Final = ("order", "shipment", "notification")


@dataclass(slots=True)
class Supervised(Child):
    """A process that is restarted after it has ended."""

    restarts: int = 0
    _restart_at: float | None = None

    def supervise(self, now: float) -> str | None:
        """Restart the process if it has ended, after a growing delay. Return a sentence about it; None: nothing to do.

        now: monotonic time, s.
        """
        if self.exit_status is None:
            limit_log(self.log)
            return None
        if self._restart_at is None:
            pause = RESTART_BACKOFF_S[min(self.restarts, len(RESTART_BACKOFF_S) - 1)]
            self._restart_at = now + pause
            return f"{self.name} ended ({self.ending()}); restarting in {pause:g} s"
        if now < self._restart_at:
            return None
        self._restart_at = None
        self.restarts += 1
        self.start()
        return f"{self.name} restarted (restart {self.restarts})"


@dataclass(slots=True)
class Stack:
    """Starts, supervises and stops every process except the broker. Files are written to `folder`."""

    scenario: Scenario
    connection: Connection
    folder: Path
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    """Environment variables of every process. The process's settings are added."""
    children: list[Supervised] = field(default_factory=list)
    """Processes in the order in which they were started."""
    ports: dict[str, int] = field(default_factory=dict)
    load_parts: list[Supervised] = field(default_factory=list)
    """The processes of the load generator."""

    @property
    def replica_folder(self) -> Path:
        """Folder in which the autoscaler stores pid files and logs of Payment replicas."""
        return self.folder / "replicas"

    @property
    def start_file(self) -> Path:
        """File for which the generator waits. It contains the time of second 0, µs since 1970."""
        return self.folder / "start_at"

    def start(
        self, spec: LoadSpec, *, web_port: int | None = None, load_workers: int = 1, only_load: bool = False
    ) -> None:
        """Start every process of the scenario's topology. Returns before they are ready; see `unhealthy`.

        web_port: port of Locust's web page; None: without it.
        load_workers: number of generator processes.
        only_load: whether to start only the generator, because services and autoscaler run elsewhere.
        """
        if not only_load:
            self.start_services()
        load_file = self.folder / "load.json"
        load_file.write_bytes(msgspec.json.encode(spec))
        settings = {
            "LOAD_FILE": str(load_file),
            "OUT_DIR": str(self.folder),
            "START_FILE": str(self.start_file),
            "PARTS": str(load_workers),
        }
        for part in range(1, load_workers + 1):
            name = "locust" if load_workers == 1 else f"locust-{part}"
            page = {"WEB_PORT": str(web_port)} if web_port is not None and part == 1 else {}
            self.load_parts.append(self._start(name, "loadgen.drivers", settings | page | {"PART": str(part)}))

    def start_services(self) -> None:
        """Start every service of the topology, and the autoscaler, which starts the replicas."""
        for service in FAUST_SERVICES if self.scenario.topology is Topology.PIPELINE else ():
            self._start(service, f"services.{service}", self._service_settings(service))
        self.start_autoscaler()

    def start_autoscaler(self) -> None:
        """Start the autoscaler alone."""
        self._start("autoscaler", "autoscaler.live", self._autoscaler_settings(), signal.SIGINT)

    def unhealthy(self) -> list[str]:
        """Return the names of the processes that do not report healthy (yet)."""
        return [name for name, port in self.ports.items() if not _is_healthy(port)]

    def failed(self) -> Supervised | None:
        """Return an ended process that is not restarted, because it runs once or has failed too often; else None."""
        ended = [child for child in self.children if child.exit_status is not None]
        return next((child for child in ended if self._runs_once(child) or child.restarts >= START_ATTEMPTS), None)

    def supervise(self, now: float) -> list[str]:
        """Restart services and autoscaler if they have ended. Return a sentence for each end and each restart."""
        return [event for child in self.children if not self._runs_once(child) and (event := child.supervise(now))]

    def _runs_once(self, child: Supervised) -> bool:
        return any(child is part for part in self.load_parts)

    def processes(self) -> dict[str, int]:
        """Return name → pid of all running processes, Payment replicas included."""
        replicas = {name: process.pid for name, _, process in read_pid_files(self.replica_folder) if process}
        return {child.name: child.pid for child in self.children if child.pid} | replicas

    def stop(self) -> None:
        """Stop the generator, wait until it has saved its counts, and then stop all other processes in parallel."""
        for part in self.load_parts:
            part.terminate()
        for part in self.load_parts:
            part.wait()
        for child in self.children:  # the autoscaler gets SIGINT, after which it also stops its replicas
            child.terminate()
        until_s = time.monotonic() + STOP_DEADLINE_S
        for child in self.children:
            child.wait(until_s - time.monotonic())
        # a killed autoscaler does not stop its replicas
        stop_orphans(ProcessLauncher(self.replica_folder), REPLICA_DEADLINE_S)

    def _start(
        self, name: str, module: str, settings: dict[str, str], stop_signal: signal.Signals = signal.SIGTERM
    ) -> Supervised:
        for folder in (self.folder / "logs", self.replica_folder):
            folder.mkdir(parents=True, exist_ok=True)
        own = {f"TAILPACK_{key}": value for key, value in settings.items()}
        environ = {**self.environ, **as_environment(self.connection), **own}
        child = Supervised(name, python_module(module), environ, self.folder / "logs" / f"{name}.log", stop_signal)
        self.children.append(child)
        child.start()
        return child

    def _service_settings(self, service: str) -> dict[str, str]:
        self.ports[service] = free_port()
        settings = {
            "HTTP_PORT": str(self.ports[service]),
            "DATA_DIR": str(self.folder / "faust" / service),
            "PIPELINE_PARTITIONS": str(self.scenario.pipeline_partitions),
        }
        if service == "order":
            settings |= {
                "PARTITIONER": self.scenario.load.partitioner,
                "LATENCY_TARGET_S": str(self.scenario.target.latency_target_s),
                "PAYMENT_PARTITIONS": str(self.scenario.payment.partitions),
                "DEMO": "true",  # accept the invented card numbers of the generator
            }
        return settings

    def _autoscaler_settings(self) -> dict[str, str]:
        self.ports["autoscaler"] = free_port()
        settings, runtime = self.scenario.autoscaler_settings(), self.scenario.payment.runtime
        if settings.get("CLIENT") == "java":  # without Python, which would take half of a start
            settings["REPLICA_COMMAND"] = shlex.join(["env", f"TAILPACK_RUNTIME={runtime}", *payment_consumer()])
        return settings | {
            "PARTITIONER": self.scenario.load.partitioner,
            "HTTP_PORT": str(self.ports["autoscaler"]),
            "STATE_DIR": str(self.replica_folder),
            "START_FILE": str(self.start_file),
            "REPLICA_MODULE": "tailpack.comparators" if runtime else "services.payment",
        }


def _is_healthy(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/healthz"
    with suppress(OSError), urllib.request.urlopen(url, timeout=HEALTH_TIMEOUT_S) as answer:
        return bool(answer.status == 200)
    return False
