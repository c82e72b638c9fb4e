"""A consumer that knows nothing of us. Arguments: librdkafka or aiokafka, then KEY=VALUE of librdkafka, and work.s.

LOG_FOLDER/NAME.PID gets lines: time (µs), A(ssigned), R(evoked) or L(ost) with partitions, or E with an event's place.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

NAME = os.environ["TAILPACK_REPLICA"]
LOG = (Path(os.environ["LOG_FOLDER"]) / f"{NAME}.{os.getpid()}").open("a", buffering=1)
STOPPED: list[int] = []


def say(kind: str, *numbers: int) -> None:
    LOG.write(f"{time.time_ns() // 1000} {kind} {' '.join(map(str, numbers))}\n")


def places(kind: str) -> Any:
    return lambda _, found: say(kind, *(one.partition for one in found))


def librdkafka(topic: str, work_s: float, options: dict[str, str]) -> None:
    consumer = confluent_kafka.Consumer(options | {"client.id": NAME, "auto.commit.interval.ms": "1000"})
    consumer.subscribe([topic], on_assign=places("A"), on_revoke=places("R"), on_lost=places("L"))
    while not STOPPED:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            time.sleep(work_s)
            say("E", message.partition(), message.offset())
    consumer.close()


class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        places("R")(self, revoked)

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        places("A")(self, assigned)


async def of_aiokafka(topic: str, options: dict[str, str]) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=options["bootstrap.servers"], group_id=options["group.id"], client_id=NAME,
        auto_offset_reset="earliest", heartbeat_interval_ms=300, session_timeout_ms=6000,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )  # fmt: skip
    consumer.subscribe([topic], listener=Listener())
    await consumer.start()
    while not STOPPED:
        for partition, records in (await consumer.getmany(timeout_ms=50)).items():
            for record in records:
                say("E", partition.partition, record.offset)
    await consumer.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: STOPPED.append(number))
    given = dict(text.split("=", 1) for text in sys.argv[2:])
    topic, work_s = given.pop("topic"), float(given.pop("work.s"))
    if sys.argv[1] == "librdkafka":
        librdkafka(topic, work_s, given)
    else:
        asyncio.run(of_aiokafka(topic, given))
