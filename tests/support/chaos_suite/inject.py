"""Carries faults out, and ends each one after its time, in any case."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
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

from chaos_suite.faults import LEADER, REPLICA, Fault, Kind
from chaos_suite.proxy import Mode
from chaos_suite.world import World

ADMIN_S: Final = 5.0
MAX_PARTITIONS: Final = 15
OVERSIZE_BYTES: Final = 900_000  # brokers take a megabyte
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
    b'"' + b"x" * OVERSIZE_BYTES + b'"',
)
"""Records that another program may write into a topic of the pipeline."""


class Injector:
    """Faults of one pipeline. Main thread only.

    leader: returns the name of the replica that leads the group, as far as known.
    disturbed: names of the processes that were killed, stopped or frozen.
    not_done: faults that could not be carried out or ended, and why.
    """

    def __init__(self, world: World, leader: Callable[[], str]) -> None:
        self._world = world
        self._leader = leader
        self._going: list[tuple[float, ExitStack]] = []
        self.disturbed: set[str] = set()
        self.not_done: list[str] = []
        self._ways: dict[Kind, Callable[[Fault], Iterator[None]]] = {
            Kind.KILL: self._process,
            Kind.TERMINATE: self._process,
            Kind.FREEZE: self._process,
            Kind.BROKER_KILL: self._killed,
            Kind.BROKER_FREEZE: partial(self._switched, mode=Mode.OPEN, freeze=True),
            Kind.BROKER_GONE: partial(self._switched, mode=Mode.DROP, freeze=True),
            Kind.BROKER_CUT: partial(self._switched, mode=Mode.DROP),
            Kind.BROKER_SLOW: partial(self._switched, mode=Mode.SLOW),
            Kind.CLOCK: self._clock,
            Kind.DELETED: self._deleted,
            Kind.UNWRITABLE: self._unwritable,
            Kind.FOREIGN: self._foreign,
            Kind.DISK: self._full_disk,
            Kind.RIVAL: self._rival,
            Kind.GROWTH: self._growth,
        }

    def begin(self, fault: Fault) -> None:
        end = ExitStack()
        try:
            end.enter_context(contextmanager(self._ways[fault.kind])(fault))
        except (KafkaException, OSError, psutil.Error) as failed:
            self.not_done.append(f"{fault}: {failed}")
        else:
            self._going.append((time.monotonic() + fault.lasts_s, end))

    @property
    def going(self) -> bool:
        return bool(self._going)

    def end(self, now_s: float = float("inf")) -> None:
        """End the faults whose time is over; without `now_s` all of them."""
        due = [one for one in self._going if one[0] <= now_s]
        self._going = [one for one in self._going if one not in due]
        for _, end in due:
            try:
                end.close()
            except (KafkaException, OSError, psutil.Error) as failed:
                self.not_done.append(f"a fault could not be ended: {failed}")

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
        if fault.kind is Kind.KILL:
            process.kill()
        elif fault.kind is Kind.TERMINATE:
            process.terminate()
        else:
            process.suspend()
        try:
            yield
        finally:
            if fault.kind is Kind.FREEZE:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def _killed(self, fault: Fault) -> Iterator[None]:
        self._world.kill_broker(int(fault.target))
        yield
        self._world.start_broker(int(fault.target))

    def _switched(self, fault: Fault, mode: Mode, freeze: bool = False) -> Iterator[None]:
        process = self._world.broker(int(fault.target)) if freeze else None
        if process:
            process.suspend()
        self._world.switch(int(fault.target), mode)
        yield
        self._world.switch(int(fault.target), Mode.OPEN)
        if process:
            process.resume()

    def _clock(self, fault: Fault) -> Iterator[None]:
        self._world.clock.write_text(fault.target, encoding="ascii")
        yield
        self._world.clock.write_text("+0", encoding="ascii")

    def _full_disk(self, _: Fault) -> Iterator[None]:
        if self._world.disk is None:
            yield
            return
        ballast = self._world.disk / "ballast"
        for size in (FILL_BYTES, 512):
            with suppress(OSError), ballast.open("ab", buffering=0) as file:
                while True:
                    file.write(bytes(size))
        yield
        ballast.unlink()

    def _deleted(self, fault: Fault) -> Iterator[None]:
        topic = f"{self._world.namespace}.{fault.target}"
        self._admin().delete_topics([topic], request_timeout=ADMIN_S)[topic].result(ADMIN_S)
        yield
        self._world.make_topics()

    def _unwritable(self, fault: Fault) -> Iterator[None]:
        self._alter(fault.target, AlterConfigOpType.SET)
        yield
        self._alter(fault.target, AlterConfigOpType.DELETE)

    def _alter(self, topic: str, operation: AlterConfigOpType) -> None:
        setting = ConfigEntry("min.insync.replicas", "4", incremental_operation=operation)
        named = ConfigResource(ResourceType.TOPIC, f"{self._world.namespace}.{topic}", incremental_configs=[setting])
        self._admin().incremental_alter_configs([named], request_timeout=ADMIN_S)[named].result(ADMIN_S)

    def _foreign(self, _: Fault) -> Iterator[None]:
        topics = self._admin().list_topics(timeout=ADMIN_S).topics
        producer = Producer({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0, "linger.ms": 0})
        for topic in sorted(name for name in topics if name.startswith(f"{self._world.namespace}.")):
            for value in FOREIGN:
                producer.produce(topic, value, key=b"foreign")
        producer.flush(ADMIN_S)
        yield

    def _rival(self, _: Fault) -> Iterator[None]:
        with self._world.rival():
            yield

    def _growth(self, _: Fault) -> Iterator[None]:
        topic = f"{self._world.namespace}.payments.requested"
        admin = self._admin()
        now = len(admin.list_topics(topic, timeout=ADMIN_S).topics[topic].partitions)
        if now < MAX_PARTITIONS:
            admin.create_partitions([NewPartitions(topic, now + 1)], request_timeout=ADMIN_S)[topic].result(ADMIN_S)
        yield

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0})
