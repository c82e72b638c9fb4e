"""Apache Kafka as a child process: one KRaft node on loopback, its data in a folder of the user's choice."""

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import psutil
from confluent_kafka.admin import AdminClient

from tailpack.errors import TailpackError
from tailpack.interrupts import uninterrupted
from tailpack.jars import classpath, ensure
from tailpack.java import java

READY_DEADLINE_S: Final = 90.0
"""A broker that was killed recovers its logs first: tens of seconds on a slow disk."""
STOP_DEADLINE_S: Final = 30.0
HEAP: Final = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Serial collector, first-stage compiler: the broker shares two cores with everything else and lives for minutes."""
STATE_FILE: Final = "broker.json"
CLUSTER_ID: Final = "dGFpbHBhY2stZW1iZWRkZQ"

PROPERTIES: Final = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={logs}
auto.create.topics.enable=false
num.partitions=1
num.network.threads=2
num.io.threads=4
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
log.cleaner.dedupe.buffer.size=4194304
"""

LOG4J: Final = """\
rootLogger.level = warn
rootLogger.appenderRef.out.ref = out
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %-5p %c{1}: %m%n
"""


class _State(msgspec.Struct, frozen=True):
    """Contents of broker.json. `create_time` tells our process from a later one with the same pid."""

    pid: int
    create_time: float
    port: int
    controller_port: int


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker whose configuration, data and log live in `folder`."""

    folder: Path
    properties: str = PROPERTIES
    """server.properties, with places for {port}, {controller_port} and {logs}."""
    _started: "list[subprocess.Popen[bytes]]" = field(default_factory=list, repr=False)
    """Kept so that a broker we stop is reaped."""

    @property
    def log(self) -> Path:
        """What the broker prints."""
        return self.folder / "kafka.log"

    def start(self, port: int = 0) -> str:
        """Start the broker, wait until it answers, return its bootstrap address.

        port: 0 keeps the folder's port of last time, or takes a free one. A running broker is left as it is.
        Raises TailpackError: port taken, no Java, not ready within 90 s.
        """
        if running := self.address():
            return running
        jars = ensure("kafka")
        state = self._configure(port)
        if not (self.folder / "data" / "meta.properties").exists():
            self._format(jars)
        self.folder.mkdir(parents=True, exist_ok=True)
        address = f"127.0.0.1:{state.port}"
        try:
            with uninterrupted(), self.log.open("ab") as log:
                command = [*self._java(jars), *HEAP, "kafka.Kafka", "server.properties"]
                process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.folder
                )
                self._started.append(process)
                born = psutil.Process(process.pid).create_time()
                self._save(msgspec.structs.replace(state, pid=process.pid, create_time=born))
            self._wait_until_ready(process, address)
        except BaseException:  # Ctrl-C included: a half-started broker is never left behind
            self.stop()
            raise
        return address

    def stop(self) -> None:
        """Stop cleanly (SIGTERM), by force after 30 s. Data and port stay for the next start."""
        process = self._process()
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_DEADLINE_S)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait(STOP_DEADLINE_S)
        self._reap()

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL): for tests of what survives it."""
        if process := self._process():
            os.kill(process.pid, signal.SIGKILL)
            process.wait(STOP_DEADLINE_S)
            self._reap()

    def address(self) -> str | None:
        """Return the bootstrap address of the running broker, None when it is not running."""
        state = self._saved()
        return f"127.0.0.1:{state.port}" if state and self._process() else None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        process = self._process()
        return process.pid if process else None

    def _reap(self) -> None:
        self._started[:] = [process for process in self._started if process.poll() is None]

    def _process(self) -> psutil.Process | None:
        state = self._saved()
        if state is None:
            return None
        try:
            process = psutil.Process(state.pid)
            alive = process.create_time() == state.create_time and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return None
        return process if alive else None

    def _saved(self) -> _State | None:
        try:
            return msgspec.json.decode((self.folder / STATE_FILE).read_bytes(), type=_State)
        except FileNotFoundError:
            return None

    def _save(self, state: _State) -> None:
        (self.folder / STATE_FILE).write_bytes(msgspec.json.encode(state))

    def _configure(self, port: int) -> _State:
        self.folder.mkdir(parents=True, exist_ok=True)
        before = self._saved()
        wanted = port or (before.port if before else 0)
        state = _State(pid=0, create_time=0.0, port=_free_port(wanted), controller_port=_free_port(0))
        properties = self.properties.format(
            port=state.port, controller_port=state.controller_port, logs=self.folder.resolve() / "data"
        )
        (self.folder / "server.properties").write_text(properties, encoding="utf-8")
        (self.folder / "log4j2.properties").write_text(LOG4J, encoding="utf-8")
        return state

    def _java(self, jars: Path) -> list[str]:
        return [
            java(),
            f"-Dlog4j2.configurationFile={self.folder.resolve() / 'log4j2.properties'}",
            "-cp",
            classpath(jars),
        ]

    def _format(self, jars: Path) -> None:
        command = [*self._java(jars), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "server.properties"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise TailpackError(f"{self.folder} cannot hold Kafka's data: {_last_line(done.stderr or done.stdout)}")

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]", address: str) -> None:
        deadline = time.monotonic() + READY_DEADLINE_S
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise TailpackError(f"Kafka ended while starting ({_last_line(self.log.read_text())}); see {self.log}")
            if _listens(address):
                AdminClient({"bootstrap.servers": address, "log_level": 0}).list_topics(
                    timeout=max(1.0, deadline - time.monotonic())
                )
                return
            time.sleep(0.05)  # nothing signals a listening port; 50 ms is short against a start of seconds
        raise TailpackError(f"Kafka did not answer on {address} within {READY_DEADLINE_S:.0f} s; see {self.log}")


def _free_port(wanted: int) -> int:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does: TIME_WAIT is no obstacle
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError as taken:
            raise TailpackError(
                f"port {wanted} on 127.0.0.1 is taken; name another with --port, or 0 for a free one"
            ) from taken
        return int(probe.getsockname()[1])


def _listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(0.2)
        return probe.connect_ex((host, int(port))) == 0


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
