"""Carries faults out, and ends each when its time is over, in any case."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Final

import psutil
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from bench.chaos.faults import LEADER, ON_BROKERS, ON_PROCESSES, REPLICA, Fault, Kind
from bench.chaos.proxy import Mode
from bench.chaos.world import World

ADMIN_S: Final = 5.0
MOST_PARTITIONS: Final = 15
"""The topic grows no further than that."""
OVERSIZE: Final = 900_000
"""Bytes; brokers take a megabyte."""
FILL_BYTES: Final = 1 << 20
FOREIGN: Final[tuple[bytes | None, ...]] = (
    None,
    b"",
    b"\xff\xfe\x00",
    b'{"v":1,"order_id":"\xe4"}',
    b"{" * 3000,
    b'{"v":1,"order_id":{"a":[1,2,3]},"replica":7,"epoch":"no","kind":"tick"}',
    b'{"hello":"world"}',
    b'[1,2,"three"]',
    b'"' + b"x" * OVERSIZE + b'"',
)
"""What others may write into a topic of ours."""


class Injector:
    """Faults of one pipeline. Main thread only.

    leader: says the name of the replica that leads the group, as far as is known.
    """

    def __init__(self, world: World, leader: Callable[[], str]) -> None:
        self._world = world
        self._leader = leader
        self._going: list[tuple[float, ExitStack]] = []
        self.disturbed: set[str] = set()
        """Names of the processes that were killed, stopped or frozen."""
        self.said: list[str] = []
        """What could not be done, and why."""

    def begin(self, fault: Fault) -> None:
        """Carry a fault out."""
        fate = ExitStack()
        try:
            fate.enter_context(self._carried_out(fault))
        except (KafkaException, OSError, psutil.Error) as failed:
            self.said.append(f"{fault}: {failed}")
            return
        self._going.append((time.monotonic() + fault.lasts_s, fate))

    def end_due(self) -> None:
        """End the faults whose time is over."""
        now = time.monotonic()
        due = [fate for until_s, fate in self._going if until_s <= now]
        self._going = [one for one in self._going if one[0] > now]
        for fate in due:
            self._end(fate)

    @property
    def going(self) -> bool:
        """Some fault is not over yet."""
        return bool(self._going)

    def end_all(self) -> None:
        """End every fault now."""
        while self._going:
            self._end(self._going.pop()[1])

    def _end(self, fate: ExitStack) -> None:
        try:
            fate.close()
        except (KafkaException, OSError, psutil.Error) as failed:
            self.said.append(f"a fault could not be ended: {failed}")

    def _carried_out(self, fault: Fault) -> AbstractContextManager[None]:
        if fault.kind in ON_PROCESSES:
            return self._process(fault)
        node = int(fault.target) if fault.kind in ON_BROKERS else 0
        ways: dict[Kind, Callable[[], AbstractContextManager[None]]] = {
            Kind.BROKER_KILL: lambda: self._killed(node),
            Kind.BROKER_FREEZE: lambda: self._frozen(node, Mode.OPEN),
            Kind.BROKER_GONE: lambda: self._frozen(node, Mode.DROP),
            Kind.BROKER_CUT: lambda: self._switched(node, Mode.DROP),
            Kind.BROKER_SLOW: lambda: self._switched(node, Mode.SLOW),
            Kind.CLOCK: lambda: self._clock(fault.target),
            Kind.DELETED: lambda: self._deleted(fault.target),
            Kind.UNWRITABLE: lambda: self._unwritable(fault.target),
            Kind.FOREIGN: self._foreign,
            Kind.DISK: self._full_disk,
            Kind.RIVAL: self._world.rival,
            Kind.GROWTH: self._growth,
        }
        return ways[fault.kind]()

    @contextmanager
    def _process(self, fault: Fault) -> Iterator[None]:
        running = self._world.processes()
        name = self._leader() if fault.target == LEADER else fault.target
        if name not in running and fault.target in (LEADER, REPLICA):
            replicas = sorted(name for name in running if name.startswith("payment-"))
            name = replicas[int(fault.which * len(replicas))] if replicas else ""
        if name not in running:
            yield  # it is dead already
            return
        self.disturbed.add(name)
        process = psutil.Process(running[name])
        match fault.kind:
            case Kind.KILL:
                process.kill()
                yield
            case Kind.TERMINATE:
                process.terminate()
                yield
            case _:
                process.suspend()
                try:
                    yield
                finally:
                    with suppress(psutil.NoSuchProcess):
                        process.resume()

    @contextmanager
    def _killed(self, node: int) -> Iterator[None]:
        self._world.kill_broker(node)
        try:
            yield
        finally:
            self._world.start_broker(node)

    @contextmanager
    def _frozen(self, node: int, mode: Mode) -> Iterator[None]:
        process = self._world.broker(node)
        with self._switched(node, mode):
            if process:
                process.suspend()
            try:
                yield
            finally:
                if process:
                    process.resume()

    @contextmanager
    def _switched(self, node: int, mode: Mode) -> Iterator[None]:
        self._world.switch(node, mode)
        try:
            yield
        finally:
            self._world.switch(node, Mode.OPEN)

    @contextmanager
    def _clock(self, step: str) -> Iterator[None]:
        self._world.clock.write_text(step, encoding="ascii")
        try:
            yield
        finally:
            self._world.clock.write_text("+0", encoding="ascii")

    @contextmanager
    def _full_disk(self) -> Iterator[None]:
        if self._world.disk is None:
            yield
            return
        ballast = self._world.disk / "ballast"
        with suppress(OSError), ballast.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(FILL_BYTES))
        with suppress(OSError), ballast.open("ab", buffering=0) as file:
            while True:
                file.write(bytes(512))
        try:
            yield
        finally:
            ballast.unlink()

    @contextmanager
    def _deleted(self, topic: str) -> Iterator[None]:
        named = f"{self._world.namespace}.{topic}"
        self._admin().delete_topics([named], request_timeout=ADMIN_S)[named].result(ADMIN_S)
        try:
            yield
        finally:
            self._world.make_topics()

    @contextmanager
    def _unwritable(self, topic: str) -> Iterator[None]:
        self._alter(topic, AlterConfigOpType.SET)
        try:
            yield
        finally:
            self._alter(topic, AlterConfigOpType.DELETE)

    def _alter(self, topic: str, operation: AlterConfigOpType) -> None:
        setting = ConfigEntry("min.insync.replicas", "4", incremental_operation=operation)
        named = ConfigResource(ResourceType.TOPIC, f"{self._world.namespace}.{topic}", incremental_configs=[setting])
        self._admin().incremental_alter_configs([named], request_timeout=ADMIN_S)[named].result(ADMIN_S)

    @contextmanager
    def _foreign(self) -> Iterator[None]:
        topics = self._admin().list_topics(timeout=ADMIN_S).topics
        producer = Producer({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0, "linger.ms": 0})
        for topic in sorted(name for name in topics if name.startswith(f"{self._world.namespace}.")):
            for value in FOREIGN:
                producer.produce(topic, value, key=b"foreign")
        producer.flush(ADMIN_S)
        yield

    @contextmanager
    def _growth(self) -> Iterator[None]:
        named = f"{self._world.namespace}.payments.requested"
        admin = self._admin()
        have = len(admin.list_topics(named, timeout=ADMIN_S).topics[named].partitions)
        if have < MOST_PARTITIONS:
            admin.create_partitions([NewPartitions(named, have + 1)], request_timeout=ADMIN_S)[named].result(ADMIN_S)
        yield

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0})
