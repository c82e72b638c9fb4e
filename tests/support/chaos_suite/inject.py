"""Inject faults, check that each one took effect, and always end each one after its time."""

import errno
import random
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import psutil
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)
from hostile import encode, mutate

from chaos_suite.evidence import CONTROL, Reader
from chaos_suite.faults import BROKERS, LEADER, REPLICA, Fault, Kind
from chaos_suite.proxy import Mode
from chaos_suite.world import World
from contracts.waiting import WaitTimeoutError, until
from tailpack.errors import TailpackError

ADMIN_S: Final = 5.0
MAX_PARTITIONS: Final = 60
PROOF_S: Final = 10.0
"""Time in which a fault must take effect, s."""
HOSTILE_RECORDS: Final = 60
SLOW_S: Final = 0.05
CLOCK_S: Final = 1800.0
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
    """Injects faults into one pipeline. It may only be used in the main thread.

    disturbed: names of the processes that were killed, stopped or frozen.
    not_done: faults that had no effect or could not be ended, and why.
    """

    def __init__(self, world: World, reader: Reader) -> None:
        self._world = world
        self._reader = reader
        self._going: list[tuple[float, ExitStack]] = []
        self.disturbed: set[str] = set()
        self.not_done: list[str] = []
        self._topics_are_missing = False
        self._ways: dict[Kind, Callable[[Fault], Iterator[None]]] = {
            Kind.KILL: self._process,
            Kind.TERMINATE: self._process,
            Kind.FREEZE: self._process,
            Kind.BROKER_KILL: self._killed,
            Kind.BROKER_FREEZE: self._frozen,
            Kind.BROKER_GONE: self._gone,
            Kind.BROKER_CUT: partial(self._switched, mode=Mode.DROP),
            Kind.BROKER_SLOW: partial(self._switched, mode=Mode.SLOW),
            Kind.CLOCK: self._clock,
            Kind.DELETED: self._deleted,
            Kind.UNWRITABLE: self._unwritable,
            Kind.FOREIGN: self._foreign,
            Kind.HOSTILE: self._hostile,
            Kind.DISK: self._full_disk,
            Kind.RIVAL: self._rival,
            Kind.GROWTH: self._growth,
        }

    def begin(self, fault: Fault) -> None:
        end = ExitStack()
        try:
            end.enter_context(contextmanager(self._ways[fault.kind])(fault))
        except (KafkaException, OSError, psutil.Error, WaitTimeoutError) as failed:
            self.not_done.append(f"{fault}: {failed}")
        else:
            self._going.append((time.monotonic() + fault.lasts_s, end))

    @property
    def going(self) -> bool:
        return bool(self._going)

    def end(self, now_s: float = float("inf")) -> None:
        """End the faults whose time is over; without `now_s`, end all faults."""
        due = [fault for fault in self._going if fault[0] <= now_s]
        self._going = [fault for fault in self._going if fault not in due]
        ends: list[Callable[[], object]] = [end.close for _, end in due]
        if not self._going and self._topics_are_missing:  # only now is every broker there to create them
            ends.append(self._world.make_topics)
            self._topics_are_missing = False
        for end in ends:
            try:
                end()
            except (KafkaException, OSError, psutil.Error, TailpackError) as failed:
                self.not_done.append(f"a fault could not be ended: {failed}")

    def _process(self, fault: Fault) -> Iterator[None]:
        running = self._world.processes()
        name = self._reader.leader if fault.target == LEADER else fault.target
        if name not in running and fault.target in (LEADER, REPLICA):
            replicas = sorted(name for name in running if name.startswith("payment-"))
            name = replicas[int(fault.which * len(replicas))] if replicas else ""
        until(lambda: name in self._world.processes(), PROOF_S, f"{name} runs")
        self.disturbed.add(name)
        process = psutil.Process(self._world.processes()[name])
        if fault.kind is not Kind.FREEZE:
            process.send_signal(signal.SIGKILL if fault.kind is Kind.KILL else signal.SIGTERM)
            yield
            return
        try:
            process.suspend()
            until(lambda: process.status() == psutil.STATUS_STOPPED, PROOF_S, f"{name} is stopped")
            yield
        finally:
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def _killed(self, fault: Fault) -> Iterator[None]:
        with self._world.broker_down(int(fault.target)):
            until(lambda: self._world.broker(int(fault.target)) is None, PROOF_S, "the broker has ended")
            yield

    def _frozen(self, fault: Fault) -> Iterator[None]:
        with self._world.frozen(int(fault.target)):
            until(lambda: self._world.answer_s(int(fault.target)) is None, PROOF_S, "the broker does not answer")
            yield

    def _gone(self, fault: Fault) -> Iterator[None]:
        with self._world.frozen(int(fault.target)):
            yield from self._switched(fault, Mode.DROP)

    def _switched(self, fault: Fault, mode: Mode) -> Iterator[None]:
        node = int(fault.target)
        try:
            self._world.switch(node, mode)
            if mode is Mode.SLOW:
                until(lambda: (self._world.answer_s(node) or 0) > SLOW_S, PROOF_S, "the broker answers slowly")
            else:
                until(lambda: self._world.answer_s(node) is None, PROOF_S, "the broker does not answer")
            yield
        finally:
            self._world.switch(node, Mode.OPEN)

    def _clock(self, fault: Fault) -> Iterator[None]:
        try:
            self._world.clock.write_text(fault.target, encoding="ascii")
            until(lambda: abs(self._world.time_s() - time.time()) > CLOCK_S, PROOF_S, "processes see another time")
            yield
        finally:
            self._world.clock.write_text("+0", encoding="ascii")

    def _full_disk(self, _: Fault) -> Iterator[None]:
        assert self._world.disk is not None, "a kind that is left out is not drawn"
        ballast = self._world.disk / "ballast"
        try:
            for size in (FILL_BYTES, 512):
                with suppress(OSError), ballast.open("ab", buffering=0) as file:
                    while True:
                        file.write(bytes(size))
            until(lambda: _is_full(ballast), PROOF_S, "the disk is full")
            yield
        finally:
            ballast.unlink()

    def _deleted(self, fault: Fault) -> Iterator[None]:
        topic, admin = f"{self._world.namespace}.{fault.target}", self._admin()
        try:
            answer(admin.delete_topics([topic], request_timeout=ADMIN_S)[topic], f"delete {topic}")
            until(lambda: topic not in admin.list_topics(timeout=ADMIN_S).topics, PROOF_S, f"{topic} is gone")
            yield
        finally:
            self._topics_are_missing = True

    def _unwritable(self, fault: Fault) -> Iterator[None]:
        topic = f"{self._world.namespace}.{fault.target}"
        with self._world.broker_down(1 + int(fault.which * BROKERS) % BROKERS):
            try:
                self._alter(fault.target, AlterConfigOpType.SET)
                until(lambda: self._writes_fail(topic), PROOF_S, f"writes into {topic} fail")
                yield
            finally:
                self._alter(fault.target, AlterConfigOpType.DELETE)

    def _writes_fail(self, topic: str) -> bool:
        errors = self._write([(topic, b"foreign", b"{}")], retries=0)
        return bool(errors) and errors[0].code() in (
            KafkaError.NOT_ENOUGH_REPLICAS,
            KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        )

    def _alter(self, topic: str, operation: AlterConfigOpType) -> None:
        setting = ConfigEntry("min.insync.replicas", str(BROKERS), incremental_operation=operation)
        named = ConfigResource(ResourceType.TOPIC, f"{self._world.namespace}.{topic}", incremental_configs=[setting])
        admin = self._admin()  # it must live until it has the answer
        answer(admin.incremental_alter_configs([named], request_timeout=ADMIN_S)[named], f"configure {topic}")

    def _foreign(self, _: Fault) -> Iterator[None]:
        topics = self._admin().list_topics(timeout=ADMIN_S).topics
        own = sorted(name for name in topics if name.startswith(f"{self._world.namespace}."))
        self._must_be_written([(topic, b"foreign", value) for topic in own for value in FOREIGN])
        yield

    def _hostile(self, fault: Fault) -> Iterator[None]:
        until(lambda: self._reader.newest.keys() >= {*CONTROL}, PROOF_S, "control records were read")
        chance = random.Random(fault.which)
        records = []
        for name in CONTROL:
            key, record = self._reader.newest[name]
            values = [encode(mutate(record, chance), chance) for _ in range(HOSTILE_RECORDS)]
            self._reader.hostile.update(values)
            records += [(f"{self._world.namespace}.{name}", key, value) for value in values]
        self._must_be_written(records)
        yield

    def _must_be_written(self, records: list[tuple[str, bytes | None, bytes | None]]) -> None:
        if errors := self._write(records):
            raise KafkaException(errors[0])

    def _write(self, records: list[tuple[str, bytes | None, bytes | None]], **options: int) -> list[KafkaError]:
        """Write (topic, key, value) records; return the errors of those that were not written."""
        errors: list[KafkaError] = []

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error:
                errors.append(error)

        client = {"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0, "linger.ms": 0}
        producer = Producer(client | {"message.timeout.ms": int(PROOF_S * 1000)} | options)
        for topic, key, value in records:
            producer.produce(topic, value, key=key, on_delivery=delivered)
        producer.flush(PROOF_S + ADMIN_S)
        return errors

    def _rival(self, _: Fault) -> Iterator[None]:
        with self._world.rival() as processes:
            until(lambda: "autoscaler" in processes(), PROOF_S, "another autoscaler runs")
            yield

    def _growth(self, _: Fault) -> Iterator[None]:
        topic = f"{self._world.namespace}.payments.requested"
        admin = self._admin()
        now = len(admin.list_topics(topic, timeout=ADMIN_S).topics[topic].partitions)
        if now < MAX_PARTITIONS:
            more = [NewPartitions(topic, now + 1)]
            answer(admin.create_partitions(more, request_timeout=ADMIN_S)[topic], f"add a partition to {topic}")
            grown = lambda: len(admin.list_topics(topic, timeout=ADMIN_S).topics[topic].partitions) > now  # noqa: E731
            until(grown, PROOF_S, f"{topic} has {now + 1} partitions")
        yield

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self._world.bootstrap_servers, "log_level": 0})


def answer(pending: "Future[None]", request: str) -> None:
    """Wait for an answer to an admin client. Raises WaitTimeoutError without one, as after the client has died."""
    try:
        pending.result(2 * ADMIN_S)
    except (TimeoutError, CancelledError) as lost:
        raise WaitTimeoutError(f"no broker has answered the request to {request} ({type(lost).__name__})") from None


def _is_full(ballast: Path) -> bool:
    try:
        with ballast.open("ab", buffering=0) as file:
            file.write(bytes(4096))
    except OSError as failed:
        return failed.errno == errno.ENOSPC
    return False
