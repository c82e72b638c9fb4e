"""A consumer that knows nothing of us. Arguments: librdkafka or aiokafka, then KEY=VALUE of the client.

It logs to LOG_FOLDER/NAME.PID: A, R and L with partitions that were assigned, revoked and lost, and E with partition
and offset of each event. Each line begins with the time (µs). It commits in the callback.
"""

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import aiokafka
import confluent_kafka
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

NAME = os.environ["TAILPACK_REPLICA"]
LOG = (Path(os.environ["LOG_FOLDER"]) / f"{NAME}.{os.getpid()}").open("a", buffering=1)
STOPPED: list[int] = []


def say(kind: str, numbers: list[int]) -> None:
    LOG.write(f"{time.time_ns() // 1000} {kind} {' '.join(map(str, numbers))}\n")


def librdkafka(options: dict[str, str]) -> None:
    topic = options.pop("topic")
    consumer = confluent_kafka.Consumer(options | {"client.id": NAME, "enable.auto.commit": False})

    def revoked(_: object, partitions: list[confluent_kafka.TopicPartition]) -> None:
        try:
            consumer.commit(asynchronous=False)
        except confluent_kafka.KafkaException as failed:  # nothing to commit, or no longer a member
            say("X", [failed.args[0].code()])
        say("R", [one.partition for one in partitions])

    consumer.subscribe(
        [topic],
        on_assign=lambda _, new: say("A", [one.partition for one in new]),
        on_revoke=revoked,
        on_lost=lambda _, gone: say("L", [one.partition for one in gone]),
    )
    while not STOPPED:
        message = consumer.poll(0.05)
        if message is not None and message.error() is None:
            say("E", [message.partition(), message.offset()])
    consumer.close()


class Listener(aiokafka.ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, consumer: aiokafka.AIOKafkaConsumer) -> None:
        self._consumer = consumer

    async def on_partitions_revoked(self, revoked: set[aiokafka.TopicPartition]) -> None:
        if revoked:
            await self._consumer.commit()
        say("R", [one.partition for one in revoked])

    async def on_partitions_assigned(self, assigned: set[aiokafka.TopicPartition]) -> None:
        say("A", [one.partition for one in assigned])


async def of_aiokafka(options: dict[str, str]) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        bootstrap_servers=options["bootstrap.servers"],
        group_id=options["group.id"],
        client_id=NAME,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        heartbeat_interval_ms=300,
        session_timeout_ms=6000,
        partition_assignment_strategy=[RoundRobinPartitionAssignor],
    )
    consumer.subscribe([options["topic"]], listener=Listener(consumer))
    await consumer.start()
    while not STOPPED:
        for partition, records in (await consumer.getmany(timeout_ms=50)).items():
            for record in records:
                say("E", [partition.partition, record.offset])
    await consumer.stop()


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: STOPPED.append(number))
    given = dict(text.split("=", 1) for text in sys.argv[2:])
    if sys.argv[1] == "librdkafka":
        librdkafka(given)
    else:
        asyncio.run(of_aiokafka(given))
