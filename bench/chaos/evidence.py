"""Reads what the pipeline left on its topics, as plain JSON by a consumer of its own; joins no group."""

import json
import struct
import time
from contextlib import suppress
from typing import Any, Final

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from bench.chaos.checker import Commit, Ended, Evidence, Members, Served

OFFSETS: Final = "__consumer_offsets"
LOGS: Final = (
    "payments.requested",
    "payments.settled",
    "shipments.scheduled",
    "notifications.sent",
    "autoscaler.journal",
    "dead.letters",
)
CONTROL: Final = ("autoscaler.plans", "autoscaler.progress")
OFFSET_KEYS: Final = (0, 1)
"""Versions of a key in that topic that tell of an offset."""
GROUP_KEY: Final = 2
HOUR_S: Final = 3600.0
METADATA_S: Final = 10.0
FEW: Final = 2000


def true_s(stamp_us: int, now_s: float) -> float:
    """Return a stamp of the last half hour, in seconds since the epoch, without the whole hours of a stepped clock."""
    stamp_s = stamp_us / 1e6
    return stamp_s - HOUR_S * round((stamp_s - now_s) / HOUR_S)


class Reader:
    """Everything that is evidence, from the begin of the topics. Poll it often, close it once."""

    def __init__(self, bootstrap_servers: str, namespace: str) -> None:
        self._namespace = namespace
        self._group = f"{namespace}.payment"
        self._client = {
            "bootstrap.servers": bootstrap_servers, "group.id": "unused", "enable.auto.commit": False,
            "auto.offset.reset": "earliest", "isolation.level": "read_committed", "fetch.wait.max.ms": 50,
            "socket.timeout.ms": 3000, "topic.metadata.refresh.interval.ms": 2000, "log_level": 0,
        }  # fmt: skip
        self.found = Evidence()
        self.epoch = 0
        """Newest epoch on the plan topic."""
        self.reports: dict[str, dict[str, Any]] = {}
        """Replica → the newest that it said of itself."""
        self._log = Consumer(self._client)
        names = [f"{namespace}.{topic}" for topic in LOGS]
        everything = self._log.list_topics(timeout=METADATA_S).topics
        self._log.assign(
            [TopicPartition(name, number, 0) for name in (*names, OFFSETS) for number in everything[name].partitions]
        )
        self._control = Consumer(self._client)
        self.renew()

    def renew(self) -> None:
        """Read the topics of plans and progress anew, from their begin: they may have been made again."""
        self.epoch = 0
        self._control.close()
        self._control = Consumer(self._client)
        self._control.assign([TopicPartition(f"{self._namespace}.{topic}", 0, 0) for topic in CONTROL])

    def poll(self, timeout_s: float = 0.02) -> None:
        """Take what has arrived."""
        for message in (*self._log.consume(FEW, timeout_s), *self._control.consume(FEW, 0)):
            if message.error() is None:
                with suppress(ValueError, KeyError, TypeError, RecursionError, struct.error):  # foreign records
                    self._take(message)

    def unserved(self, orders: set[str]) -> set[str]:
        """Return those of these orders whose customers have not been told yet."""
        return orders - set(self.found.notified)

    def close(self) -> None:
        """Leave the brokers."""
        for one in (self._log, self._control):
            with suppress(KafkaException, RuntimeError):
                one.close()

    def _take(self, message: Message) -> None:
        topic = message.topic()
        if topic == OFFSETS:
            self._offsets(message)
            return
        told = json.loads(message.value() or b"")
        match topic.removeprefix(f"{self._namespace}."):
            case "payments.requested":
                self.found.requested[_order(told)] = (message.partition(), message.offset())
            case "payments.settled":
                self.found.settled.append(_served(told))
            case "shipments.scheduled":
                self.found.shipped.append(_order(told))
            case "notifications.sent":
                self.found.notified.append(_order(told))
            case "dead.letters":
                self.found.refused.append(_order(told))
            case "autoscaler.journal":
                if told["kind"] == "replica" and told["change"] in ("died", "left"):
                    self.found.ends.append(Ended(int(told["at_us"]), told["replica"], told["detail"]))
            case "autoscaler.plans":
                told["assignment"], told["replicas"], told["at_us"]
                self.epoch = max(self.epoch, int(told["epoch"]))
            case "autoscaler.progress":
                told["pid"], int(told["epoch"]), int(told["assigned_epoch"])
                self.reports[str(told["replica"])] = told

    def _offsets(self, message: Message) -> None:
        key, value = Bytes(message.key()), Bytes(message.value() or b"")
        version, group = key.i16(), key.text()
        if not group.startswith(f"{self._namespace}.") or message.value() is None:
            return
        if version in OFFSET_KEYS:
            topic, partition = key.text(), key.i32()
            value.i16()
            self.found.commits.append(Commit(group, topic, partition, value.i64(), message.timestamp()[1] / 1e3))
        elif version == GROUP_KEY and group == self._group:
            self.found.members.append(_members(value, message.timestamp()[1] / 1e3))


class Bytes:
    """Kafka's types one after the other, big-endian, texts with their length before them."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def _next(self, kind: str) -> int:
        (number,) = struct.unpack_from(kind, self._raw, self._at)
        self._at += struct.calcsize(kind)
        return int(number)

    def i16(self) -> int:
        """A short number."""
        return self._next(">h")

    def i32(self) -> int:
        """A number."""
        return self._next(">i")

    def i64(self) -> int:
        """A long number."""
        return self._next(">q")

    def text(self) -> str:
        """Text; empty for none."""
        return self._take(self.i16()).decode()

    def blob(self) -> bytes:
        """Bytes; empty for none."""
        return self._take(self.i32())

    def _take(self, length: int) -> bytes:
        self._at += max(0, length)
        return self._raw[self._at - max(0, length) : self._at]


def _members(value: Bytes, at_s: float) -> Members:
    """Read version 3 of the record in which a coordinator keeps a group of the classic protocol."""
    version = value.i16()
    if version != 3:
        raise RuntimeError(f"the group's record has version {version}; 3 is known")
    value.text()  # the kind of protocol
    generation = value.i32()
    value.text()  # its name
    leader = value.text()
    value.i64()  # since when
    clients: dict[str, str] = {}
    for _ in range(value.i32()):
        member = value.text()
        value.text()  # instance
        clients[member] = value.text()
        value.text()  # host
        value.i32(), value.i32()  # time-outs
        value.blob(), value.blob()  # subscription, assignment
    return Members(at_s, generation, frozenset(clients.values()), clients.get(leader, ""), frozenset(clients))


def _order(told: dict[str, Any]) -> str:
    order = told["order_id"]
    if not isinstance(order, str):
        raise TypeError(order)
    return order


def _served(told: dict[str, Any]) -> Served:
    when = told["timeline"]
    return Served(
        order_id=_order(told),
        partition=int(when["partition"]),
        offset=int(when["offset"]),
        replica=str(when["replica"]),
        done_s=true_s(when["done_us"], time.time()),
        verdict=(told["payment_id"], told["decline_reason"], told["risk_score"], told["amount_minor"]),
        accepted=bool(told["accepted"]),
    )
