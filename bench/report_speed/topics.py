"""The events of a run on disk, put on a broker as the payments that were requested and settled."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from bench.simulation.folder import EVENTS
from contracts.connection import Connection
from contracts.events import INTENDED_AT_HEADER, PLACED_AT_HEADER, PaymentRequested, PaymentSettled, Timeline
from contracts.topics import Topic, qualified

DEADLINE_S: Final = 60.0
READ_AT_ONCE: Final = 50_000
MOST_WAITING: Final = 50_000
"""Records that wait to be sent: librdkafka takes twice as many."""
SAME: Final[dict[str, Any]] = {
    "customer": "c-17", "merchant": "books", "country": "DE", "currency": "EUR", "amount_minor": 4_200,
}  # fmt: skip
"""What every order is about: a report does not look at it."""
TOKEN: Final = "t"  # noqa: S105  nobody's card


def publish(folder: Path, connection: Connection, partitions: int) -> None:
    """Put the events of `folder` on the topics of the connection's namespace, which are made.

    Raises KafkaException when Kafka refuses, TimeoutError when it does not acknowledge in time.
    """
    requested, settled = (
        qualified(connection.namespace, topic) for topic in (Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED)
    )
    admin = AdminClient(connection.librdkafka())  # held: it gives up what it was asked when it is collected
    for created in admin.create_topics([NewTopic(name, partitions) for name in (requested, settled)]).values():
        created.result(timeout=DEADLINE_S)
    quiet = {"log_level": 3}  # a broker that has just started makes an idempotent producer wait, and say so
    producer = Producer({**connection.librdkafka(), "enable.idempotence": True, "linger.ms": 20, **quiet})
    encode = msgspec.json.Encoder().encode
    for row in _rows(folder):
        number = row["partition"]
        headers = [(INTENDED_AT_HEADER, str(row["intended_us"])), (PLACED_AT_HEADER, str(row["placed_us"]))]
        for topic, record in ((requested, _asked(row)), (settled, _done(row))):
            if len(producer) > MOST_WAITING:
                producer.flush(DEADLINE_S)
            producer.produce(topic, key=row["event_id"], value=encode(record), headers=headers, partition=number)
        producer.poll(0)
    if left := producer.flush(DEADLINE_S):
        raise TimeoutError(f"{left} records were not acknowledged within {DEADLINE_S:.0f} s; is the broker well?")


def _rows(folder: Path) -> Iterator[dict[str, Any]]:
    from pyarrow import dataset  # noqa: PLC0415  only the bench extra brings it

    for batch in dataset.dataset(folder / EVENTS).to_batches(batch_size=READ_AT_ONCE):
        yield from batch.to_pylist()


def _asked(row: dict[str, Any]) -> PaymentRequested:
    times = Timeline(intended_us=row["intended_us"], placed_us=row["placed_us"])
    return PaymentRequested(order_id=row["event_id"], timeline=times, **SAME, card_token=TOKEN)


def _done(row: dict[str, Any]) -> PaymentSettled:
    known = ("intended_us", "placed_us", "received_us", "done_us", "partition", "offset", "replica", "epoch")
    return PaymentSettled(
        payment_id=f"p-{row['event_id']}",
        order_id=row["event_id"],
        accepted=True,
        decline_reason=None,
        risk_score=0.1,
        timeline=Timeline(**{name: row[name] for name in known}),
        **SAME,
    )
