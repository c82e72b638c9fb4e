"""A record becomes a settled payment or a dead letter; no record can stop a replica."""

import re

import msgspec
import pytest
from payment_group import request

from contracts.connection import Connection, read_settings
from contracts.events import DeadLetter, PaymentSettled
from contracts.topics import Topic
from contracts.validation import InvalidSettingsError
from partitioners import Partitioner
from services.common.records import PAYLOAD_LIMIT
from services.consumer import Event, Refused
from services.consumer.server import encode_dead_letter
from services.payment.domain import MAX_REQUEST_BYTES, payment_id, settled_payment
from services.payment.replica import ReplicaSettings

CONNECTION = Connection(bootstrap_servers="localhost:1", namespace="run-1")
DONE_US = 1_700_000_000_000_000


def handle(value: bytes | None, *, key: bytes | None = b"key") -> tuple[Topic, bytes | None, bytes]:
    """Return the output of a record: by the handler, or by the consumer if the handler refuses it."""
    event = Event(
        "run-1.payments.requested", 3, 41, key, value, (), 0, received_us=DONE_US - 9000, epoch=7, generation=4
    )
    try:
        settled = settled_payment(event, "payment-2", DONE_US)
    except Refused as error:  # any other error would be retried in vain
        return Topic.DEAD_LETTERS, *encode_dead_letter("payment", event, error, DONE_US)
    return Topic.PAYMENTS_SETTLED, settled.order_id.encode(), msgspec.json.encode(settled)


def changed(**fields: object) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(request(1)) | fields)


def test_a_good_request_is_settled_under_its_order_id_with_its_timeline():
    requested = request(1)
    topic, key, value = handle(msgspec.json.encode(requested))
    settled = msgspec.json.decode(value, type=PaymentSettled)
    assert (topic, key) == (Topic.PAYMENTS_SETTLED, requested.order_id.encode())
    assert (settled.payment_id, settled.accepted) == (payment_id(requested.order_id), True)
    timeline = settled.timeline
    assert (timeline.intended_us, timeline.placed_us) == (requested.timeline.intended_us, requested.timeline.placed_us)
    assert (timeline.received_us, timeline.done_us) == (DONE_US - 9000, DONE_US)
    assert (timeline.partition, timeline.offset, timeline.replica) == (3, 41, "payment-2")
    assert (timeline.epoch, timeline.generation) == (7, 4)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "no value"),
        (b"[]", "object"),
        (changed(v=99), "version 99 is unknown"),
        (changed(amount_minor=0), "amount_minor 0"),
        (changed(amount_minor=10**25), "amount_minor|out of range"),
        (changed(timeline={}), "intended_us"),
        (b"x" * (MAX_REQUEST_BYTES + 1), "bytes"),
        (b'{"v": 1, "a": ' + b"[" * 30_000, "not JSON"),
    ],
)
def test_an_invalid_request_becomes_a_dead_letter_with_the_reason(value, reason):
    topic, key, written = handle(value)
    letter = msgspec.json.decode(written, type=DeadLetter)
    assert (topic, key) == (Topic.DEAD_LETTERS, b"key")
    assert (letter.stage, letter.partition, letter.offset) == ("payment", 3, 41)
    assert letter.letter_id == "run-1.payments.requested/3/41"
    assert len(letter.reasons) == 1
    assert re.search(reason, letter.reasons[0]), letter.reasons
    assert len(letter.payload.encode()) <= PAYLOAD_LIMIT


def test_key_order_refuses_a_partitioner_that_splits_keys() -> None:
    environ = {"TAILPACK_REPLICA": "p", "TAILPACK_KEY_ORDER": "true", "TAILPACK_BOOTSTRAP_SERVERS": "127.0.0.1:1"}
    with pytest.raises(InvalidSettingsError, match=r"TAILPACK_PARTITIONER.*'ch' does not keep the order of a key"):
        read_settings({**environ, "TAILPACK_PARTITIONER": "ch"}, ReplicaSettings)
    assert read_settings({**environ, "TAILPACK_PARTITIONER": "kg"}, ReplicaSettings)[1].partitioner is Partitioner.KG
