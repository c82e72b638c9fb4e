"""Apache Kafka as child processes: KRaft nodes on loopback, their data in a folder of the user's choice."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from msgspec.structs import replace

from contracts.children import defer_stop_signals, last_log_line, process_identity
from contracts.waiting import WaitTimeoutError, until
from tailpack.errors import TailpackError
from tailpack.local.broker_config import PROPERTIES, Seat, assign_seats, write_configuration
from tailpack.local.jars import ensure, java
from tailpack.local.ports import LOOPBACK, free_ports

READY_DEADLINE_S: Final = 90.0
FORMAT_DEADLINE_S: Final = 90
"""A broker that was killed recovers its logs first: tens of seconds on a slow disk."""
STOP_DEADLINE_S: Final = 30.0
JVM: Final = ("-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Serial collector, first-stage compiler: the broker shares two cores with everything else and lives for minutes."""
STATE_FILE: Final = "broker.json"
CLUSTER_ID: Final = "dGFpbHBhY2stZW1iZWRkZQ"


@dataclass(frozen=True, slots=True)
class Node:
    """One process, broker and controller at once, whose configuration, data and log live in `folder`."""

    folder: Path
    properties: str = PROPERTIES
    _started: "list[subprocess.Popen[bytes]]" = field(default_factory=list, repr=False, compare=False)
    """Kept so that a node we stop is reaped."""

    @property
    def log(self) -> Path:
        """The file that takes its output."""
        return self.folder / "kafka.log"

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        process = self.process()
        return process.pid if process else None

    @property
    def seat(self) -> Seat | None:
        """Where it listens, or listened last; None before its first start."""
        try:
            return msgspec.json.decode((self.folder / STATE_FILE).read_bytes(), type=Seat)
        except FileNotFoundError:
            return None

    def process(self) -> psutil.Process | None:
        """Return its process, None when it does not run."""
        state = self.seat
        if state is None or not (state.pid and state.who) or process_identity(state.pid) != state.who:
            return None
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(state.pid)
        return None

    def prepare(self, jars: Path, seat: Seat) -> None:
        """Write the configuration for this seat, and make the folder fit to hold data when it is not."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._save(seat)
        write_configuration(self.folder, seat, self.properties)
        if (self.folder / "data" / "meta.properties").exists():
            return
        command = [*self._java(jars), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "server.properties"]
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, timeout=FORMAT_DEADLINE_S, check=False
            )
        except subprocess.TimeoutExpired:
            late = f"Kafka's storage tool did not end within {FORMAT_DEADLINE_S} s; is the machine busy?"
            raise TailpackError(f"{self.folder}: {late}") from None
        if done.returncode:
            words = (done.stderr or done.stdout).strip().splitlines() or ["it printed nothing"]
            raise TailpackError(f"{self.folder} cannot hold Kafka's data: {words[-1].strip()}")

    def launch(self, jars: Path, seat: Seat) -> None:
        """Start the process and write down which it is; it answers later."""
        with defer_stop_signals(), self.log.open("ab") as log:
            command = [*self._java(jars), *JVM, seat.heap, "kafka.Kafka", "server.properties"]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )
            self._started.append(process)
            self._save(seat, pid=process.pid, who=process_identity(process.pid))

    def wait_until_ready(self, deadline_s: float) -> None:
        """Return when it serves clients. `deadline_s`: of time.monotonic(). Raises TailpackError."""
        seat = self.seat

        def answers() -> bool:
            if not self.process():
                words = last_log_line(self.log) or "it printed nothing"
                raise TailpackError(f"Kafka ended while starting ({words}); see {self.log}")
            return seat is not None and _serves(seat)

        try:
            until(answers, deadline_s - time.monotonic(), "Kafka answers")
        except WaitTimeoutError as late:
            why = f"Kafka did not answer within {READY_DEADLINE_S:.0f} s; see {self.log}"
            raise TailpackError(why) from late

    def reap(self) -> None:
        """Collect what has ended of what was started here."""
        self._started[:] = [process for process in self._started if process.poll() is None]

    def _save(self, seat: Seat, *, pid: int = 0, who: str = "") -> None:
        (self.folder / STATE_FILE).write_bytes(msgspec.json.encode(replace(seat, pid=pid, who=who)))

    def _java(self, jars: Path) -> list[str]:
        settings = f"-Dlog4j2.configurationFile={self.folder.resolve() / 'log4j2.properties'}"
        return [java(), settings, "-cp", str(jars / "*")]


class Broker:
    """An embedded Kafka. Its nodes are numbered from 1: a single one lives in `folder` itself, several in its folders
    node-1, node-2, … With three, each partition has three copies, and a write is acknowledged when two of them have it.

    folder: None is where `tailpack kafka start` keeps its own. brokers: how many nodes; None: as many as the folder
    holds, one in a new folder. properties: server.properties, with the places that PROPERTIES has. door: port on which
    a node listens → the port that it advertises, for example that of a proxy.
    Raises TailpackError when the folder holds another number of them.
    """

    def __init__(
        self,
        folder: Path | None = None,
        brokers: int | None = None,
        properties: str = PROPERTIES,
        door: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self.folder = folder or default_folder()
        self._properties = properties
        self._door = door
        held = self._held()
        if brokers and held and brokers != held:
            what = f"holds a Kafka of {held} broker{'s' if held > 1 else ''}, not {brokers}"
            raise TailpackError(f"{self.folder} {what}; leave --brokers out, or name another --folder")
        self._size = held or brokers or 1

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The nodes by number, running or not."""
        folders = [self.folder] if self._size == 1 else [self._folder(one) for one in range(1, self._size + 1)]
        return {number: Node(folder, self._properties) for number, folder in enumerate(folders, start=1)}

    @property
    def logs(self) -> str:
        """Where the nodes print, as a shell pattern."""
        return str(self.folder / ("kafka.log" if self._size == 1 else "node-*/kafka.log"))

    @property
    def addresses(self) -> dict[int, str]:
        """Where clients find each node, or found it last; nodes that never started are left out."""
        return {number: node.seat.address for number, node in self.nodes.items() if node.seat}

    def address(self) -> str | None:
        """Return the bootstrap addresses of all nodes, joined by commas; None when no node runs."""
        return ",".join(self.addresses.values()) if any(node.pid for node in self.nodes.values()) else None

    def start(self, port: int = 0) -> str:
        """Start every node that does not run, wait until each serves clients, return their bootstrap addresses.

        port: of the first node; the others take the ports that follow. 0: those of last time, or free ones.
        Raises TailpackError: port taken, no Java, not ready within 90 s.
        """
        self._launch(self._seats(port))
        return ",".join(self.addresses.values())

    def stop(self) -> None:
        """Stop every node cleanly (SIGTERM), by force after 30 s. Data and ports stay for the next start."""
        _stop(list(self.nodes.values()))

    def kill(self, node: int = 1) -> None:
        """End a node as a crash would (SIGKILL): for tests of what survives it."""
        if process := self.nodes[node].process():
            os.kill(process.pid, signal.SIGKILL)
            process.wait(STOP_DEADLINE_S)
            self.nodes[node].reap()

    def _launch(self, seats: Sequence[Seat]) -> None:
        """Start the nodes of these seats and wait until each serves clients; when one does not, stop them all."""
        java()  # without one nothing is left in the folder
        jars, nodes = ensure("kafka"), [self.nodes[seat.node] for seat in seats]
        with ThreadPoolExecutor(max_workers=len(seats) or 1) as pool:
            list(pool.map(lambda node, seat: node.prepare(jars, seat), nodes, seats))
        deadline_s = time.monotonic() + READY_DEADLINE_S
        try:
            for node, seat in zip(nodes, seats, strict=True):
                node.launch(jars, seat)
            for node in nodes:
                node.wait_until_ready(deadline_s)
        except BaseException:  # Ctrl-C included: a half-started broker is never left behind
            _stop(nodes)
            raise

    def _seats(self, port: int) -> list[Seat]:
        """Seats of the nodes that do not run. Those that run know the others' of last time, so these stay."""
        down = [node.seat for node in self.nodes.values() if node.pid is None]
        if len(down) == len(self.nodes):
            return [replace(seat, door=self._door(seat.port)) for seat in assign_seats(down, port)]
        seats: list[Seat] = [seat for seat in down if seat]
        free_ports([seat.port for seat in seats])  # one line here, if another process took one meanwhile
        return seats

    def _held(self) -> int:
        seat = Node(self.folder).seat or Node(self._folder(1)).seat
        return max(1, len(seat.quorum)) if seat else 0

    def _folder(self, number: int) -> Path:
        return self.folder / f"node-{number}"


def _stop(nodes: Sequence[Node]) -> None:
    asked = [process for node in nodes if (process := node.process())]
    for process in asked:
        process.terminate()
    for process in psutil.wait_procs(asked, STOP_DEADLINE_S)[1]:
        process.kill()
        process.wait(STOP_DEADLINE_S)
    for node in nodes:
        node.reap()


def default_folder() -> Path:
    """Return where `tailpack kafka start` keeps its broker: ${XDG_STATE_HOME:-~/.local/state}/tailpack/kafka."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "tailpack" / "kafka"


def _serves(seat: Seat) -> bool:
    """Tell whether the node listens and has its place among the brokers."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        if probe.connect_ex((LOOPBACK, seat.port)):
            return False
    with suppress(KafkaException):
        client = AdminClient({"bootstrap.servers": seat.address, "log_level": 0})
        return seat.node in client.list_topics(timeout=5).brokers
    return False
