"""Apache Kafka as a child process: a KRaft node on loopback, its data in a folder of the user's choice."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tailpack.errors import TailpackError
from tailpack.local.broker_config import PROPERTIES, Seat, assign_seats, write_configuration
from tailpack.local.jars import classpath, ensure
from tailpack.local.java import java
from tailpack.local.processes import uninterrupted

READY_DEADLINE_S: Final = 90.0
"""A broker that was killed recovers its logs first: tens of seconds on a slow disk."""
STOP_DEADLINE_S: Final = 30.0
JVM: Final = ("-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
"""Serial collector, first-stage compiler: the broker shares two cores with everything else and lives for minutes."""
STATE_FILE: Final = "broker.json"
CLUSTER_ID: Final = "dGFpbHBhY2stZW1iZWRkZQ"


class _State(Seat, frozen=True, kw_only=True):
    """Contents of broker.json. `create_time` tells our process from a later one with the same pid."""

    pid: int = 0
    """0: not started yet."""
    create_time: float = 0.0


@dataclass(frozen=True, slots=True)
class Broker:
    """A node, broker and controller at once, whose configuration, data and log live in `folder`."""

    folder: Path
    properties: str = PROPERTIES
    """server.properties, with the places that PROPERTIES has."""
    _started: "list[subprocess.Popen[bytes]]" = field(default_factory=list, repr=False, compare=False)
    """Kept so that a broker we stop is reaped."""

    @property
    def log(self) -> Path:
        """What the broker prints."""
        return self.folder / "kafka.log"

    def start(self, port: int = 0) -> str:
        """Start the broker alone, wait until it answers, return its bootstrap address.

        port: 0 keeps the folder's port of last time, or takes a free one. A running broker is left as it is.
        Raises TailpackError: port taken, no Java, not ready within 90 s.
        """
        if running := self.address():
            return running
        (seat,) = assign_seats([self.seat], port)
        start_together([(self, seat)])
        return seat.address

    def stop(self) -> None:
        """Stop cleanly (SIGTERM), by force after 30 s. Data and port stay for the next start."""
        stop_together([self])

    def kill(self) -> None:
        """End the broker as a crash would (SIGKILL): for tests of what survives it."""
        if process := self._process():
            os.kill(process.pid, signal.SIGKILL)
            process.wait(STOP_DEADLINE_S)
            self._reap()

    def address(self) -> str | None:
        """Return the bootstrap address of the running broker, None when it is not running."""
        seat = self.seat
        return seat.address if seat and self._process() else None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        process = self._process()
        return process.pid if process else None

    @property
    def seat(self) -> Seat | None:
        """Where it listens, or listened last; None before its first start."""
        return self._saved()

    def prepare(self, jars: Path, seat: Seat) -> None:
        """Write the configuration for this seat, and make the folder fit to hold data when it is not."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._save(seat)
        write_configuration(self.folder, seat, self.properties)
        if (self.folder / "data" / "meta.properties").exists():
            return
        command = [*self._java(jars), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", "server.properties"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode:
            raise TailpackError(f"{self.folder} cannot hold Kafka's data: {_last_line(done.stderr or done.stdout)}")

    def launch(self, jars: Path, seat: Seat) -> None:
        """Start the process and write down which it is; it answers later."""
        with uninterrupted(), self.log.open("ab") as log:
            command = [*self._java(jars), *JVM, seat.heap, "kafka.Kafka", "server.properties"]
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd=self.folder
            )
            self._started.append(process)
            born = psutil.Process(process.pid).create_time()
            self._save(seat, pid=process.pid, create_time=born)

    def wait_until_ready(self, deadline_s: float) -> None:
        """Return when the node serves clients. `deadline_s`: of time.monotonic(). Raises TailpackError."""
        seat = self.seat
        while seat and self._process() and time.monotonic() < deadline_s:
            if _serves(seat):
                return
            time.sleep(0.05)  # nothing signals a listening port; 50 ms is short against a start of seconds
        if not self._process():
            raise TailpackError(f"Kafka ended while starting ({_last_line(self.log.read_text())}); see {self.log}")
        raise TailpackError(f"Kafka did not answer within {READY_DEADLINE_S:.0f} s; see {self.log}")

    def terminate(self) -> psutil.Process | None:
        """Ask the process to end, and return it; None when it does not run."""
        if process := self._process():
            process.terminate()
        return process

    def _reap(self) -> None:
        self._started[:] = [process for process in self._started if process.poll() is None]

    def _process(self) -> psutil.Process | None:
        state = self._saved()
        if state is None or not state.pid:
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

    def _save(self, seat: Seat, *, pid: int = 0, create_time: float = 0.0) -> None:
        state = _State(port=seat.port, node=seat.node, quorum=seat.quorum, pid=pid, create_time=create_time)
        (self.folder / STATE_FILE).write_bytes(msgspec.json.encode(state))

    def _java(self, jars: Path) -> list[str]:
        return [
            java(),
            f"-Dlog4j2.configurationFile={self.folder.resolve() / 'log4j2.properties'}",
            "-cp",
            classpath(jars),
        ]


def start_together(seated: Sequence[tuple[Broker, Seat]]) -> None:
    """Start these nodes and wait until each serves clients; when one does not, stop them all.

    Raises TailpackError: no Java, not ready within 90 s.
    """
    jars = ensure("kafka")
    with ThreadPoolExecutor(max_workers=len(seated) or 1) as pool:
        list(pool.map(lambda pair: pair[0].prepare(jars, pair[1]), seated))
    deadline_s = time.monotonic() + READY_DEADLINE_S
    brokers = [broker for broker, _ in seated]
    try:
        for broker, seat in seated:
            broker.launch(jars, seat)
        for broker in brokers:
            broker.wait_until_ready(deadline_s)
    except BaseException:  # Ctrl-C included: a half-started broker is never left behind
        stop_together(brokers)
        raise


def stop_together(brokers: Sequence[Broker]) -> None:
    """Stop these nodes cleanly (SIGTERM), by force after 30 s."""
    asked = [process for broker in brokers if (process := broker.terminate())]
    for process in psutil.wait_procs(asked, STOP_DEADLINE_S)[1]:
        process.kill()
        process.wait(STOP_DEADLINE_S)
    for broker in brokers:
        broker._reap()


def _serves(seat: Seat) -> bool:
    """Tell whether the node listens and has its place among the brokers."""
    with socket.socket() as probe:
        probe.settimeout(0.2)
        host, _, port = seat.address.rpartition(":")
        if probe.connect_ex((host, int(port))):
            return False
    try:
        return (
            seat.node in AdminClient({"bootstrap.servers": seat.address, "log_level": 0}).list_topics(timeout=5).brokers
        )
    except KafkaException:
        return False


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"
