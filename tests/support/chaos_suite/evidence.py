"""Read the records of the pipeline as plain JSON, with a consumer that joins no group."""

import json
import struct
import time
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from chaos_suite.checker import Commit, Ended, Evidence, Members, Served

OFFSETS: Final = "__consumer_offsets"
ORDERS: Final = {"shipments.scheduled": "shipped", "notifications.sent": "notified", "dead.letters": "refused"}
LOGS: Final = ("payments.requested", "payments.settled", "autoscaler.journal", *ORDERS)
CONTROL: Final = ("autoscaler.plans", "autoscaler.progress")
OFFSET_KEYS: Final = (0, 1)
"""Key versions of records that contain an offset."""
GROUP_KEY: Final = 2
HOUR_S: Final = 3600.0
METADATA_S: Final = 10.0
BATCH: Final = 2000


def true_s(stamp_us: int, now_s: float) -> float:
    """Return a timestamp of the last half hour in seconds since 1970, without the whole hours of a stepped clock."""
    stamp_s = stamp_us / 1e6
    return stamp_s - HOUR_S * round((stamp_s - now_s) / HOUR_S)


class Reader:
    """Reads all evidence since the topics were created. It must be polled often and closed once."""

    def __init__(self, bootstrap_servers: str, namespace: str) -> None:
        self._namespace = namespace
        self._client = {
            "bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "isolation.level": "read_committed", "fetch.wait.max.ms": 50,
            "socket.timeout.ms": 3000, "topic.metadata.refresh.interval.ms": 2000, "log_level": 0,
        }  # fmt: skip
        self.found = Evidence()
        self.epoch = 0
        """Newest epoch on the plan topic."""
        self.reports: dict[str, dict[str, Any]] = {}
        """Replica → its newest progress report."""
        self.newest: dict[str, tuple[bytes | None, Any]] = {}
        """Control topic → key and JSON data of its newest record."""
        self.hostile: set[bytes] = set()
        """Values that a schedule has written into control topics. They are not evidence."""
        self._log = Consumer(self._client)
        names = [*(f"{namespace}.{topic}" for topic in LOGS), OFFSETS]
        topics = self._log.list_topics(timeout=METADATA_S).topics
        self._log.assign([TopicPartition(name, number, 0) for name in names for number in topics[name].partitions])
        self._control = Consumer(self._client)
        self.renew()

    def renew(self) -> None:
        """Read the topics of plans and progress from the begin, because they may have been created again."""
        self.epoch = 0
        self._control.close()
        self._control = Consumer(self._client)
        self._control.assign([TopicPartition(f"{self._namespace}.{topic}", 0, 0) for topic in CONTROL])

    def poll(self, timeout_s: float) -> None:
        for message in (*self._log.consume(BATCH, timeout_s), *self._control.consume(BATCH, 0)):
            if message.error() is None:
                with suppress(ValueError, KeyError, TypeError, RecursionError, struct.error):  # foreign records
                    self._take(message)

    @property
    def leader(self) -> str:
        """Name of the replica that leads the group, if it is known."""
        return self.found.members[-1].leader if self.found.members else ""

    def close(self) -> None:
        for consumer in (self._log, self._control):
            with suppress(KafkaException, RuntimeError):
                consumer.close()

    def _take(self, message: Message) -> None:
        if message.topic() == OFFSETS:
            self._take_offsets(message)
            return
        if message.value() in self.hostile:
            return
        record = json.loads(message.value() or b"")
        match topic := message.topic().removeprefix(f"{self._namespace}."):
            case "payments.requested":
                self.found.requested[_order(record)] = (message.partition(), message.offset())
            case "payments.settled":
                self.found.settled.append(_served(record))
            case "autoscaler.journal":
                if record["kind"] == "replica" and record["change"] in ("died", "left"):
                    self.found.ends.append(Ended(int(record["at_us"]), record["replica"], record["detail"]))
            case "autoscaler.plans":
                record["assignment"], record["replicas"], record["at_us"]
                self.epoch = max(self.epoch, int(record["epoch"]))
                self.newest[topic] = (message.key(), record)
            case "autoscaler.progress":
                record["pid"], int(record["epoch"]), int(record["assigned_epoch"])
                self.reports[str(record["replica"])] = record
                self.newest[topic] = (message.key(), record)
            case _:
                getattr(self.found, ORDERS[topic]).append(_order(record))

    def _take_offsets(self, message: Message) -> None:
        key, value = Bytes(message.key()), Bytes(message.value() or b"")
        version, group = key.number(">h"), key.text()
        if not group.startswith(f"{self._namespace}.") or message.value() is None:
            return
        at_s = message.timestamp()[1] / 1e3
        if version in OFFSET_KEYS:
            topic, partition = key.text(), key.number(">i")
            value.number(">h")
            self.found.commits.append(Commit(group, topic, partition, value.number(">q"), at_s))
        elif version == GROUP_KEY and group == f"{self._namespace}.payment":
            self.found.members.append(members(value, at_s))


class Bytes:
    """Decodes Kafka's types from bytes: big-endian numbers, and texts and blobs that follow their length."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def number(self, kind: str) -> int:
        (number,) = struct.unpack_from(kind, self._raw, self._at)
        self._at += struct.calcsize(kind)
        return int(number)

    def text(self) -> str:
        return self.blob(">h").decode()

    def blob(self, length: str = ">i") -> bytes:
        begin = self._at + struct.calcsize(length)
        self._at = max(0, self.number(length)) + begin  # −1: none
        return self._raw[begin : self._at]


def members(value: Bytes, at_s: float) -> Members:
    """Read version 3 of the record in which a coordinator stores a group of the classic protocol."""
    version = value.number(">h")
    if version != 3:
        raise RuntimeError(f"the group's record has version {version}, and only 3 is supported")
    value.text()  # the kind of protocol
    generation = value.number(">i")
    value.text()  # its name
    leader = value.text()
    value.number(">q")  # since when
    clients: dict[str, str] = {}
    for _ in range(value.number(">i")):
        member = value.text()
        value.text()  # instance
        clients[member] = value.text()
        value.text()  # host
        value.number(">i"), value.number(">i")  # time-outs
        value.blob(), value.blob()  # subscription, assignment
    return Members(at_s, generation, frozenset(clients.values()), clients.get(leader, ""), frozenset(clients))


def _order(record: dict[str, Any]) -> str:
    order = record["order_id"]
    if not isinstance(order, str):
        raise TypeError(order)
    return order


def _served(record: dict[str, Any]) -> Served:
    when = record["timeline"]
    return Served(
        order_id=_order(record),
        partition=int(when["partition"]),
        offset=int(when["offset"]),
        replica=str(when["replica"]),
        done_s=true_s(when["done_us"], time.time()),
        verdict=(record["payment_id"], record["decline_reason"], record["risk_score"], record["amount_minor"]),
        accepted=bool(record["accepted"]),
    )
