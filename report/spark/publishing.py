"""Put a made-up run on a broker, as a real one would have left it there."""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contracts.connection import Connection
from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER
from contracts.topics import Topic, partitions_of, qualified
from report.run_info import RunInfo
from report.spark.samples import PARTITIONS, MadeUpRun, records_of

DEADLINE_S: Final = 60.0
PAYMENT_ONLY: Final = frozenset({Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED})


def create_topics(connection: Connection) -> None:
    """Create every topic of a run in the connection's namespace. Raises KafkaException when Kafka refuses."""
    wanted = [
        NewTopic(qualified(connection.namespace, topic), num_partitions=partitions_of(topic, PARTITIONS))
        for topic in Topic
    ]
    admin = AdminClient(connection.librdkafka())  # held: it gives up what it was asked when it is collected
    for created in admin.create_topics(wanted).values():
        created.result(timeout=DEADLINE_S)


def publish(
    connection: Connection,
    run: MadeUpRun,
    *,
    pipeline: bool,
    copies: Callable[[Topic, int], int] = lambda _topic, _k: 1,
) -> None:
    """Publish every record of `run`; `copies` says how often event k appears on a topic (0: it never got there).

    Raises TimeoutError when the broker does not acknowledge in time.
    """
    quiet = {"log_level": 3}  # a broker that has just started makes an idempotent producer wait, and say so
    producer = Producer({**connection.librdkafka(), "enable.idempotence": True, "linger.ms": 20, **quiet})
    for topic, k, value in _records(run):
        if not pipeline and topic not in PAYMENT_ONLY:
            continue
        partition = k % PARTITIONS if topic is Topic.PAYMENTS_REQUESTED else -1
        name, key = qualified(connection.namespace, topic), f"o-{k:08d}"
        for _ in range(copies(topic, k)):
            send(producer, name, key=key, value=value, headers=headers_of(run, k), partition=partition)
    finish(producer)


def send(
    producer: Producer,
    topic: str,
    *,
    key: str,
    value: bytes,
    headers: list[tuple[str, str | bytes | None]] | None = None,
    partition: int = -1,
) -> None:
    """Hand one record to the producer, waiting while its queue is full."""
    while True:
        try:
            producer.produce(topic, key=key, value=value, headers=headers or [], partition=partition)
        except BufferError:
            producer.poll(0.1)
        else:
            producer.poll(0)
            return


def finish(producer: Producer) -> None:
    """Wait until everything is acknowledged. Raises TimeoutError when it is not."""
    if left := producer.flush(DEADLINE_S):
        raise TimeoutError(f"{left} records were not acknowledged within {DEADLINE_S:.0f} s; is the broker well?")


def headers_of(run: MadeUpRun, k: int) -> list[tuple[str, str | bytes | None]]:
    """Return the headers with which the generator sends event k."""
    return [(INTENDED_AT_HEADER, str(run.intended[k])), (PLACED_AT_HEADER, str(run.placed[k]))]


def run_info(connection: Connection, run: MadeUpRun, *, pipeline: bool) -> RunInfo:
    """Return the description of a made-up run."""
    started_us = int(run.intended[0])
    return RunInfo(
        run=connection.namespace,
        scenario={"name": "made-up"},
        policy="static",
        seed=1,
        topology="pipeline" if pipeline else "payment-only",
        bootstrap_servers=connection.bootstrap_servers,
        client_properties=connection.client_properties,
        payment_partitions=PARTITIONS,
        latency_target_s=0.5,
        percentile=0.999,
        duration_s=float((run.intended[-1] - started_us) // 1_000_000 + 1),
        started_us=started_us,
        drained_us=int(run.notified[-1]),
        events_scheduled=len(run.intended),
    )


def _records(run: MadeUpRun) -> Iterator[tuple[Topic, int, bytes]]:
    encode = msgspec.json.Encoder().encode
    for k in range(len(run.intended)):
        for topic, record in records_of(run, k).items():
            yield topic, k, encode(record)
