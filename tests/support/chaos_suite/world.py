"""The environment of a schedule: three brokers behind proxies, a small disk, and one pipeline."""

import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

from bench.scenario import load_scenario
from chaos_suite.faults import BROKERS, SESSION_S, Kind
from chaos_suite.proxy import BEHIND_PROXIES, Mode, Proxies
from contracts.children import defer_stop_signals
from contracts.connection import Connection
from contracts.waiting import until
from tailpack.local.broker import Broker
from tailpack.local.jars import kafka_jars
from tailpack.local.stack import Stack
from tailpack.local.topics import create_topics

PARTITIONS: Final = 9
READY_S: Final = 90.0
DISK_BYTES: Final = 48 << 20
TURN_S: Final = 0.025
ANSWER_S: Final = 0.5
API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 1, -1)
"""A request for the versions that a broker supports, from a client without a name."""
STEPPED: Final = Path(__file__).parent / "stepped"
SCENARIO: Final = {
    "payment.session_s": SESSION_S, "payment.heartbeat_s": 0.3,
    # It packs the rates again at each tick; the load moves between partitions, so partitions move all the time.
    "autoscaler.policy": "paper-optimal", "policy.bin_events_per_s": 12.0, "autoscaler.decision_interval_s": 2.0,
    "autoscaler.initial_replicas": 2, "autoscaler.min_replicas": 2, "autoscaler.max_replicas": 3,
    "autoscaler.cool_down_up_s": 5.0, "autoscaler.cool_down_down_s": 10.0,
}  # fmt: skip


class Cluster:
    """Three brokers behind proxies, and the small disk. They exist during the block."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proxies = Proxies()
        self.broker = Broker(
            folder / "kafka", brokers=BROKERS, properties=BEHIND_PROXIES, advertised_port=self.proxies.advertised_port
        )
        self.disk: Path | None = None
        self.left_out: dict[Kind, str] = {}
        """Kind of fault that this machine does not support → reason."""

    def __enter__(self) -> "Cluster":
        self.broker.start()
        disk = self.folder / "disk"
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tailpack-chaos", str(disk)]
        try:
            subprocess.run(command, capture_output=True, check=True)
            self.disk = disk
        except (OSError, subprocess.CalledProcessError) as failed:
            self.left_out[Kind.DISK] = f"no disk can be mounted: {getattr(failed, 'stderr', b'').decode() or failed}"
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.broker.nodes:
            self.broker.kill(node)
        self.proxies.close()
        if self.disk:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=False)


class World:
    """A fresh pipeline on the cluster."""

    partitions = PARTITIONS

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.namespace = f"chaos-{uuid.uuid4().hex[:6]}"
        self.bootstrap_servers = ",".join(cluster.broker.addresses.values())
        self._connection = Connection(bootstrap_servers=self.bootstrap_servers, namespace=self.namespace)
        self.disk = cluster.disk
        self._frozen: set[int] = set()
        self.folder = (cluster.disk or cluster.folder) / self.namespace
        self.folder.mkdir()
        self.clock = cluster.folder / f"{self.namespace}.clock"
        """File with the seconds that are added to the wall clock of the pipeline's processes."""
        self.clock.write_text("+0", encoding="ascii")
        path = os.pathsep.join(filter(None, (str(STEPPED), os.environ.get("PYTHONPATH", ""))))
        environ = os.environ | {"PYTHONPATH": path, "TAILPACK_CHAOS_CLOCK": str(self.clock)}
        self._scenario = load_scenario("demo", SCENARIO)
        self._stack = Stack(self._scenario, self._connection, self.folder, environ=environ)

    @property
    def order_port(self) -> int:
        return self._stack.ports["order"]

    def start(self) -> None:
        """Start the pipeline and wait until it is healthy."""
        self.make_topics()
        self._stack.start_services()

        def ready() -> bool:
            self.supervise()
            return not self._stack.unhealthy() and "payment-1" in self.processes()

        until(ready, READY_S, "the pipeline is healthy")

    def close(self) -> None:
        """End every process of the pipeline at once, frozen ones too, and remove its files."""
        with defer_stop_signals():
            _kill(self._stack)
            for process in self._ours():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep_logs(self, into: Path) -> None:
        into.mkdir(parents=True, exist_ok=True)
        for log in [*self.folder.rglob("*.log"), *self._cluster.folder.rglob("kafka.log")]:
            shutil.copyfile(log, into / "-".join(log.relative_to(self._cluster.folder).parts))

    def processes(self) -> dict[str, int]:
        """Name → pid of the processes that run: payment-0, …, autoscaler, order, shipment, notification."""
        return self._stack.processes()

    def strangers(self) -> dict[int, str]:
        """Pid → command of processes of the pipeline that are neither in the stack nor in a pid file."""
        known = set(self.processes().values())
        return {process.pid: process.cmdline()[-1] for process in self._ours() if process.pid not in known}

    def _ours(self) -> list[psutil.Process]:
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("TAILPACK_NAMESPACE") == self.namespace:  # a zombie has none
                    found.append(process)
        return found

    def supervise(self) -> None:
        """Restart ended processes without a growing pause, because the schedule has ended them."""
        for child in self._stack.children:
            child.restarts = 0
        self._stack.supervise(time.monotonic())

    def broker(self, node: int) -> psutil.Process | None:
        return self._cluster.broker.nodes[node].process()

    @contextmanager
    def broker_down(self, node: int) -> Iterator[None]:
        """Kill a broker. At the end of the block, start it again without waiting until it serves."""
        self._cluster.broker.kill(node)
        try:
            yield
        finally:
            found = self._cluster.broker.nodes[node]
            if found.state:
                found.launch(kafka_jars(), found.state)

    @contextmanager
    def frozen(self, node: int) -> Iterator[None]:
        """Stop a broker's process, and continue it at the end."""
        self._frozen.add(node)
        process = self.broker(node)
        try:
            if process:
                process.suspend()
            yield
        finally:
            self._frozen.discard(node)
            if process:
                process.resume()

    @contextmanager
    def throttled(self) -> Iterator[None]:
        """Stop each broker for half of the time, as with a CPU limit of half a core."""
        stop = threading.Event()

        def turn() -> None:
            is_running = True
            while not stop.wait(TURN_S):
                is_running = not is_running
                self._turn(is_running)
            self._turn(is_running=True)

        thread = threading.Thread(target=turn, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()

    def _turn(self, is_running: bool) -> None:
        for node in self._cluster.broker.nodes:
            with suppress(psutil.Error):
                if node not in self._frozen and (process := self.broker(node)):
                    (process.resume if is_running else process.suspend)()

    def answer_s(self, node: int) -> float | None:
        """Return how long a broker takes for one request of a client; None: no answer in time."""
        state = self._cluster.broker.nodes[node].state
        if state is None:
            return None
        began_s = time.monotonic()
        try:
            port = self._cluster.proxies.advertised_port(state.port)
            with socket.create_connection(("127.0.0.1", port), ANSWER_S) as connection:
                connection.settimeout(ANSWER_S)
                connection.sendall(API_VERSIONS)
                return time.monotonic() - began_s if connection.recv(4) else None
        except OSError:
            return None

    def time_s(self) -> float:
        """Return the wall clock of the pipeline's processes."""
        command = [sys.executable, "-c", "import time; print(time.time())"]
        return float(subprocess.run(command, env=self._stack.environ, capture_output=True, check=True).stdout)

    def switch(self, node: int, mode: Mode) -> None:
        if state := self._cluster.broker.nodes[node].state:
            self._cluster.proxies.switch(state.port, mode)

    @contextmanager
    def rival(self) -> Iterator[Callable[[], dict[str, int]]]:
        """Run another autoscaler of the same group with its own folder. Yield a function that returns its processes.

        At the end it and its replicas are killed.
        """
        folder = self.folder / f"rival-{uuid.uuid4().hex[:6]}"
        folder.mkdir()
        other = Stack(self._scenario, self._connection, folder, environ=self._stack.environ)
        try:
            other.start_autoscaler()
            yield other.processes
        finally:
            _kill(other)

    def make_topics(self) -> None:
        """Create the topics that are missing."""
        create_topics(self._connection, PARTITIONS)


def _kill(stack: Stack) -> None:
    """Kill all processes. The autoscaler is killed first, so that it does not restart replicas."""
    for _ in range(2):  # the second time includes replicas that the autoscaler started meanwhile
        for _, pid in sorted(stack.processes().items()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    stack.stop()
