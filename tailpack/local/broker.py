"""Run Apache Kafka as child processes: KRaft nodes on loopback, with their data in one folder."""

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

from autoscaler.live.foreign.assignor import CLASS, build, jar_path
from autoscaler.live.launchers.processes import process_identity, running
from contracts.children import defer_stop_signals, last_log_line
from contracts.validation import DECODE_ERRORS
from contracts.waiting import WaitTimeoutError, until
from tailpack.errors import TailpackError
from tailpack.local.broker_config import PROPERTIES, NodeState, assign_ports, write_configuration
from tailpack.local.jars import java, kafka_jars
from tailpack.local.ports import LOOPBACK, free_ports

READY_DEADLINE_S: Final = 90.0
"""Maximum time to start. After a kill, a broker first recovers its logs, which is slow on a slow disk."""
FORMAT_DEADLINE_S: Final = 90
STOP_DEADLINE_S: Final = 30.0
JVM: Final = ("-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:CompileThresholdScaling=0.1")
"""Options that save CPU (serial collector, early and only C1), because all processes of a run share the cores."""
STATE_FILE: Final = "broker.json"
CLUSTER_ID: Final = "dGFpbHBhY2stZW1iZWRkZQ"


@dataclass(frozen=True, slots=True)
class Node:
    """One process that is broker and controller. Its configuration, data and log are in `folder`."""

    folder: Path
    properties: str = PROPERTIES
    _started: "list[subprocess.Popen[bytes]]" = field(default_factory=list, repr=False, compare=False)
    """Child processes of this object. `reap` collects their exit statuses."""

    @property
    def log(self) -> Path:
        """The file with the node's output."""
        return self.folder / "kafka.log"

    @property
    def pid(self) -> int | None:
        """Process id; None if it does not run."""
        process = self.process()
        return process.pid if process else None

    @property
    def state(self) -> NodeState | None:
        """The node's ports and process at its last start; None: it was never started."""
        try:
            return msgspec.json.decode((self.folder / STATE_FILE).read_bytes(), type=NodeState)
        except FileNotFoundError:
            return None
        except (OSError, *DECODE_ERRORS) as broken:
            raise TailpackError(f"{self.folder}: {STATE_FILE} is unreadable ({broken}); use another folder") from broken

    def process(self) -> psutil.Process | None:
        """Return the node's process; None if it does not run."""
        state = self.state
        return running(state.pid, state.identity) if state else None

    def prepare(self, jars: Path, state: NodeState) -> None:
        """Write the configuration with the ports of `state`. Format the data folder if it is not formatted."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._save(state)
        write_configuration(self.folder, state, self.properties)
        if (self.folder / "data" / "meta.properties").exists():
            return
        command = [*self._java(jars), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "server.properties"]
        try:
            done = subprocess.run(
                command, cwd=self.folder, capture_output=True, text=True, timeout=FORMAT_DEADLINE_S, check=False
            )
        except subprocess.TimeoutExpired:
            why = f"Kafka's storage tool did not end within {FORMAT_DEADLINE_S} s; the machine may be overloaded"
            raise TailpackError(f"{self.folder}: {why}") from None
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["it printed nothing"]
            raise TailpackError(f"{self.folder} cannot be formatted for Kafka's data: {lines[-1].strip()}")

    def launch(self, jars: Path, state: NodeState) -> None:
        """Start the process and record its identity. Returns before the node serves clients."""
        with defer_stop_signals(), self.log.open("ab") as log:
            heap = os.environ.get("KAFKA_HEAP_OPTS", state.heap).split()  # as Kafka's own scripts do
            command = [*self._java(jars), *JVM, *heap, "kafka.Kafka", "server.properties"]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )
            self._started.append(process)
            self._save(state, pid=process.pid, identity=process_identity(process.pid))

    def wait_until_ready(self, deadline_s: float) -> None:
        """Wait until the node serves clients. deadline_s: a time of time.monotonic(). Raises TailpackError."""
        state = self.state

        def answers() -> bool:
            if not self.process():
                last_line = last_log_line(self.log) or "it printed nothing"
                raise TailpackError(f"Kafka exited while starting ({last_line}); see {self.log}")
            return state is not None and _serves(state)

        try:
            until(answers, deadline_s - time.monotonic(), "Kafka answers")
        except WaitTimeoutError as late:
            why = f"Kafka did not answer within {READY_DEADLINE_S:.0f} s; see {self.log}"
            raise TailpackError(why) from late

    def reap(self) -> None:
        """Collect the exit status of child processes that have ended."""
        self._started[:] = [process for process in self._started if process.poll() is None]

    def _save(self, state: NodeState, *, pid: int = 0, identity: str = "") -> None:
        (self.folder / STATE_FILE).write_bytes(msgspec.json.encode(replace(state, pid=pid, identity=identity)))

    def _java(self, jars: Path) -> list[str]:
        settings = f"-Dlog4j2.configurationFile={self.folder.resolve() / 'log4j2.properties'}"
        assignor = [jar_path()] if CLASS in self.properties else []
        return [java(), settings, "-cp", ":".join(map(str, [jars / "*", *assignor]))]


class Broker:
    """An embedded Kafka. Its nodes are numbered from 1. With three nodes, each partition has three copies, two of which
    must acknowledge a write.

    folder: folder of a single node; several nodes use its subfolders node-1, node-2, … None: that of `kafka start`,
        ${XDG_STATE_HOME:-~/.local/state}/tailpack/kafka.
    brokers: number of nodes; None: as many as the folder already has, else 1.
    properties: template of server.properties, with the placeholders of PROPERTIES.
    advertised_port: maps the port of a node to the port that it advertises, for example of a proxy; 0: the same port.
    is_planned: whether brokers assign partitions by plans (`consumers = assigned`); None: as at their last start.
    Raises TailpackError if the folder has a different number of nodes.
    """

    def __init__(
        self,
        folder: Path | None = None,
        brokers: int | None = None,
        properties: str = PROPERTIES,
        advertised_port: Callable[[int], int] = lambda _: 0,
        is_planned: bool | None = None,
    ) -> None:
        state_home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
        self.folder = folder or state_home / "tailpack" / "kafka"
        self._properties, self._advertised_port = properties, advertised_port
        state = Node(self.folder).state or Node(self._folder(1)).state
        existing = max(1, len(state.quorum)) if state else 0
        if brokers and existing and brokers != existing:
            what = f"holds a Kafka of {existing} broker{'s' if existing > 1 else ''}, not {brokers}"
            raise TailpackError(f"{self.folder} {what}; leave out --brokers, or choose another --folder")
        self._size = existing or brokers or 1
        if is_planned or (is_planned is None and any(map(_is_planned, (self.folder, self._folder(1))))):
            self._properties += f"group.consumer.assignors={CLASS},range\n"

    @cached_property
    def nodes(self) -> dict[int, Node]:
        """The nodes by number, running or not."""
        folders = [self.folder] if self._size == 1 else [self._folder(number) for number in range(1, self._size + 1)]
        return {number: Node(folder, self._properties) for number, folder in enumerate(folders, start=1)}

    @property
    def logs(self) -> str:
        """Log files of the nodes, as a shell pattern."""
        return str(self.folder / ("kafka.log" if self._size == 1 else "node-*/kafka.log"))

    @property
    def addresses(self) -> dict[int, str]:
        """Address of each node at its last start, without nodes that were never started."""
        return {number: node.state.address for number, node in self.nodes.items() if node.state}

    def address(self) -> str | None:
        """Return the bootstrap addresses of all nodes, separated by commas; None if no node runs."""
        return ",".join(self.addresses.values()) if any(node.pid for node in self.nodes.values()) else None

    def start(self, port: int = 0) -> str:
        """Start every node that does not run, and wait until each node serves clients. Return the bootstrap addresses.

        port: port of the first node; the others use the following ports. 0: the ports of the last start, or free ones.
        Raises TailpackError if a port is taken, Java is missing, or a node is not ready within 90 s.
        """
        if any(node.pid and _is_planned(node.folder) != (CLASS in node.properties) for node in self.nodes.values()):
            raise TailpackError("the running broker has another assignor; stop it first: tailpack kafka stop")
        self._launch(self._states(port))
        return ",".join(self.addresses.values())

    def stop(self) -> None:
        """Stop every node with SIGTERM, or after 30 s with SIGKILL. The next start uses the same data and ports."""
        _stop(list(self.nodes.values()))

    def kill(self, node: int = 1) -> None:
        """Kill a node with SIGKILL. Tests use it to simulate a crash."""
        if process := self.nodes[node].process():
            os.kill(process.pid, signal.SIGKILL)
            process.wait(STOP_DEADLINE_S)
            self.nodes[node].reap()

    def _launch(self, states: Sequence[NodeState]) -> None:
        """Start these nodes, and wait until each one serves clients. If one does not, stop them all."""
        java()  # raises before anything is written into the folder
        jars, nodes = kafka_jars(), [self.nodes[state.node] for state in states]
        if CLASS in self._properties:
            build(jar_path(), jars, java())
        with ThreadPoolExecutor(max_workers=len(states) or 1) as pool:
            list(pool.map(lambda node, state: node.prepare(jars, state), nodes, states))
        deadline_s = time.monotonic() + READY_DEADLINE_S
        try:
            for node, state in zip(nodes, states, strict=True):
                node.launch(jars, state)
            for node in nodes:
                node.wait_until_ready(deadline_s)
        except BaseException:  # also after Ctrl-C: no half-started broker may remain
            _stop(nodes)
            raise

    def _states(self, port: int) -> list[NodeState]:
        """Return the ports for the nodes that do not run. These do not change if other nodes run, which use them."""
        down = [node.state for node in self.nodes.values() if node.pid is None]
        if len(down) == len(self.nodes):
            assigned = assign_ports(down, port)
            return [replace(state, advertised_port=self._advertised_port(state.port)) for state in assigned]
        states: list[NodeState] = [state for state in down if state]
        free_ports([state.port for state in states])  # raises if another process took a port meanwhile
        return states

    def _folder(self, number: int) -> Path:
        return self.folder / f"node-{number}"


def _is_planned(folder: Path) -> bool:
    file = folder / "server.properties"
    return file.exists() and CLASS in file.read_text(encoding="utf-8")


def _stop(nodes: Sequence[Node]) -> None:
    running = [process for node in nodes if (process := node.process())]
    for process in running:
        process.terminate()
    for process in psutil.wait_procs(running, STOP_DEADLINE_S)[1]:
        process.kill()
        process.wait(STOP_DEADLINE_S)
    for node in nodes:
        node.reap()


def _serves(state: NodeState) -> bool:
    """Return whether the node listens and has joined the cluster."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        if probe.connect_ex((LOOPBACK, state.port)):
            return False
    with suppress(KafkaException):
        client = AdminClient({"bootstrap.servers": state.address, "log_level": 0})
        return state.node in client.list_topics(timeout=5).brokers
    return False
