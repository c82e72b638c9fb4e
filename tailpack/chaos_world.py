"""The brokers, the proxies and the pipeline on which the chaos suite acts."""

import os
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import psutil

import bench.chaos
from bench.chaos.faults import BROKERS, SESSION_S, Kind
from bench.chaos.proxy import Mode, Proxies
from bench.scenario import load_scenario
from contracts.children import uninterrupted
from contracts.connection import Connection
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.broker_config import BEHIND_PROXIES
from tailpack.local.jars import ensure
from tailpack.local.stack import Stack
from tailpack.local.topics import create_topics

PARTITIONS: Final = 9
READY_S: Final = 90.0
DISK_BYTES: Final = 48 << 20
STEPPED: Final = Path(bench.chaos.__file__).parent / "stepped"
SCENARIO: Final = {
    "payment.session_s": SESSION_S, "payment.heartbeat_s": 0.3,
    # It packs the rates of each tick anew, so that the load, which moves between partitions, moves them all the time.
    "autoscaler.policy": "paper-optimal", "policy.bin_events_per_s": 12.0, "autoscaler.decision_interval_s": 2.0,
    "autoscaler.initial_replicas": 2, "autoscaler.min_replicas": 2, "autoscaler.max_replicas": 3,
    "autoscaler.cool_down_up_s": 5.0, "autoscaler.cool_down_down_s": 10.0,
}  # fmt: skip


class Cluster:
    """Three brokers behind proxies, and the small disk, for as long as the block lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proxies = Proxies()
        self.broker = Broker(folder / "kafka", brokers=BROKERS, properties=BEHIND_PROXIES, door=self.proxies.door)
        self.disk: Path | None = None
        self.left_out: dict[Kind, str] = {}
        """Kinds of faults that cannot be had on this machine, and why."""

    def __enter__(self) -> "Cluster":
        self.broker.start()
        self._mount()
        return self

    def __exit__(self, *_: object) -> None:
        for node in self.broker.nodes:
            self.broker.kill(node)
        self.proxies.close()
        if self.disk:
            subprocess.run(["umount", "--lazy", str(self.disk)], check=False)

    def _mount(self) -> None:
        disk = self.folder / "disk"
        disk.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tailpack-chaos", str(disk)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as missing:
            self.left_out[Kind.DISK] = f"no disk can be mounted: {missing}"
            return
        if done.returncode:
            self.left_out[Kind.DISK] = f"no disk can be mounted: {done.stderr.strip()}"
        else:
            self.disk = disk


class LiveWorld:
    """A fresh pipeline on the cluster. Implements bench.chaos.world.World."""

    partitions = PARTITIONS

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.namespace = f"chaos-{uuid.uuid4().hex[:6]}"
        self.bootstrap_servers = ",".join(cluster.broker.addresses.values())
        self._connection = Connection(bootstrap_servers=self.bootstrap_servers, namespace=self.namespace)
        self.disk = cluster.disk
        self.folder = (cluster.disk or cluster.folder) / self.namespace
        self.folder.mkdir()
        self.clock = cluster.folder / f"{self.namespace}.clock"
        self.clock.write_text("+0", encoding="ascii")
        path = os.pathsep.join(filter(None, (str(STEPPED), os.environ.get("PYTHONPATH", ""))))
        environ = os.environ | {"PYTHONPATH": path, "TAILPACK_CHAOS_CLOCK": str(self.clock)}
        self._scenario = load_scenario("demo", SCENARIO)
        self._stack = Stack(self._scenario, self._connection, self.folder, environ=environ)

    @property
    def order_port(self) -> int:
        """Of Order's HTTP interface."""
        return self._stack.ports["order"]

    def start(self) -> None:
        """Start everything and wait until it is well. Raises TailpackError."""
        create_topics(self._connection, PARTITIONS)
        self._stack.start_services()
        give_up_s = time.monotonic() + READY_S
        while (waiting := self._stack.unhealthy()) or "payment-1" not in self.processes():
            self.supervise()
            if time.monotonic() > give_up_s:
                raise TailpackError(f"{', '.join(waiting) or 'replicas'} not ready within {READY_S:.0f} s")
            time.sleep(0.1)  # nothing tells when a page answers

    def close(self) -> None:
        """End every process of the pipeline at once, frozen ones too, and remove its files."""
        with uninterrupted():
            _kill(self._stack)
            for process in self._ours():
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def keep(self, into: Path) -> None:
        """Copy the logs of processes and brokers."""
        into.mkdir(parents=True, exist_ok=True)
        for log in [*self.folder.rglob("*.log"), *self._cluster.folder.rglob("kafka.log")]:
            shutil.copyfile(log, into / "-".join(log.relative_to(self._cluster.folder).parts))

    def processes(self) -> Mapping[str, int]:
        """Name → pid of all that run."""
        return self._stack.processes()

    def strangers(self) -> dict[int, str]:
        """Return pid → command of the pipeline's processes that neither the stack nor a pid file knows."""
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
        """Start again what has ended; each time soon, for it is not its own fault."""
        for child in self._stack.children:
            child.restarts = 0
        self._stack.supervise(time.monotonic())

    def broker(self, node: int) -> psutil.Process | None:
        """Return its process."""
        return self._cluster.broker.nodes[node].process()

    def kill_broker(self, node: int) -> None:
        """SIGKILL."""
        self._cluster.broker.kill(node)

    def start_broker(self, node: int) -> None:
        """Start it; it serves later."""
        found = self._cluster.broker.nodes[node]
        if found.seat:
            found.launch(ensure("kafka"), found.seat)

    def switch(self, node: int, mode: Mode) -> None:
        """Let its proxy do this."""
        if seat := self._cluster.broker.nodes[node].seat:
            self._cluster.proxies.switch(seat.port, mode)

    @contextmanager
    def rival(self) -> Iterator[None]:
        """Start another autoscaler that has its own folder; in the end it is killed, and its replicas are."""
        folder = self.folder / f"rival-{uuid.uuid4().hex[:6]}"
        folder.mkdir()
        other = Stack(self._scenario, self._connection, folder, environ=self._stack.environ)
        other.start_autoscaler()
        try:
            yield
        finally:
            _kill(other)

    def make_topics(self) -> None:
        """Make anew what is missing, as it was at the start."""
        create_topics(self._connection, PARTITIONS)  # those that exist are left as they are


def _kill(stack: Stack) -> None:
    """End everything of it at once: the autoscaler first, so that nobody starts what has ended."""
    for _ in range(2):  # what the autoscaler started while the others were looked for is seen the second time
        for _, pid in sorted(stack.processes().items()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    stack.stop()
