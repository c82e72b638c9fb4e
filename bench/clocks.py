"""How far the clocks of hosts are from each other: each asks the same broker for its time, again and again.

A record's send and its acknowledgement, by the host's clock, hold between them the broker's stamp of the append, in
whole milliseconds: that bounds the offset between the two clocks, as the round trips of NTP do, and many bounds cross
in a narrow one.
"""

import os
import socket
import sys
import time
from collections.abc import Iterable
from typing import Final

import msgspec
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench import BenchError
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.validation import from_environment
from report.run_info import HostClock

TOPIC: Final = "clock"
"""Below the run's namespace; one partition, so that all ask the broker that leads it."""
ASKED: Final = 40
EVERY_S: Final = 0.013
"""Between two records: no divisor of the broker's millisecond, so that bounds fall differently."""
AGAIN_S: Final = 20.0
DEADLINE_S: Final = 10.0
STAMP_US: Final = 1_000


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison of a host's clock with the broker's; the true offset is within `error_us` of `offset_us` (µs)."""

    host: str
    offset_us: int
    """The broker's time minus the host's."""
    error_us: int


def bounds(trips: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """Return offset and error (µs) from round trips: sent and acknowledged by our clock, stamped by the broker's (µs).

    Where no offset fits all, a clock was set meanwhile: the error is then by how much they contradict each other.
    """
    low = high = None
    for sent_us, stamped_us, acknowledged_us in trips:
        least, most = stamped_us - acknowledged_us, stamped_us + STAMP_US - sent_us
        low, high = least if low is None else max(low, least), most if high is None else min(high, most)
    if low is None or high is None:
        raise BenchError("no record came back")
    return (low + high) // 2, (abs(high - low) + 1) // 2


def ask(connection: Connection) -> tuple[int, int]:
    """Return how far the broker's clock is ahead of ours and within what (µs). Raises BenchError."""
    topic, trips = f"{connection.namespace}.{TOPIC}", list[tuple[int, int, int]]()
    _create(connection, topic)
    producer = Producer(connection.librdkafka() | {"linger.ms": "0", "log_level": "0"})

    def came_back(sent_us: int, error: KafkaError | None, message: Message) -> None:
        kind, stamped_ms = message.timestamp()
        if error is None and kind == TIMESTAMP_LOG_APPEND_TIME:
            trips.append((sent_us, 1000 * stamped_ms, now_us()))

    for _ in range(ASKED):
        sent_us = now_us()
        producer.produce(
            topic, b"", on_delivery=lambda error, message, sent_us=sent_us: came_back(sent_us, error, message)
        )
        producer.flush(DEADLINE_S)
        time.sleep(EVERY_S)
    return bounds(trips)


def of_hosts(looks: Iterable[Look]) -> tuple[HostClock, ...]:
    """Return each host's clock, by its most exact comparison, and how far apart its comparisons were."""
    by_host: dict[str, list[Look]] = {}
    for one in looks:
        by_host.setdefault(one.host, []).append(one)
    return tuple(
        HostClock(
            host=host,
            offset_s=min(some, key=lambda one: one.error_us).offset_us / 1e6,
            error_s=min(one.error_us for one in some) / 1e6,
            wander_s=(max(one.offset_us for one in some) - min(one.offset_us for one in some)) / 1e6,
        )
        for host, some in sorted(by_host.items())
    )


def _create(connection: Connection, topic: str) -> None:
    stamped = NewTopic(topic, 1, -1, config={"message.timestamp.type": "LogAppendTime"})
    admin = AdminClient(connection.librdkafka() | {"log_level": "0"})
    (made,) = admin.create_topics([stamped]).values()
    try:
        made.result(DEADLINE_S)
    except KafkaException as refused:
        if refused.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise BenchError(f"{topic}: {refused.args[0].str()}") from refused


def main() -> None:
    """Compare again and again, in a pod of each node; each comparison is a line of JSON on standard output."""
    connection, host = from_environment(os.environ, Connection), os.environ.get("NODE") or socket.gethostname()
    while True:
        try:
            offset_us, error_us = ask(connection)
            look = Look(host=host, offset_us=offset_us, error_us=error_us)
            sys.stdout.write(msgspec.json.encode(look).decode() + "\n")
            sys.stdout.flush()
            pause_s = AGAIN_S
        except (BenchError, KafkaException) as not_yet:
            sys.stderr.write(f"{not_yet}\n")
            pause_s = 1.0
        time.sleep(pause_s)  # the clocks' own pace


if __name__ == "__main__":
    main()
