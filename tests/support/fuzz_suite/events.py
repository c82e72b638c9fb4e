"""Targets: the records of events, batches of them, and the outputs that stages read back."""

import asyncio
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

import msgspec
from aiokafka.consumer.fetcher import FetchResult, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.util import calc_crc32c
from aiokafka.structs import TopicPartition

from contracts.connection import Connection
from contracts.events import (
    DeadLetter,
    NotificationSent,
    OrderStatus,
    PaymentRequested,
    PaymentSettled,
    ShipmentScheduled,
)
from contracts.topics import Topic
from contracts.unpacking import MAX_POLL_BYTES, Records, limit_unpacking
from contracts.validation import DECODE_ERRORS
from fuzz_suite.control import LETTER
from fuzz_suite.inputs import CARD, NOW_US, Inputs
from partitioners import Partitioner
from services.common.faust_app import ServiceSettings
from services.common.fence import Fence
from services.common.read_back import id_reader
from services.common.records import LETTER_LIMIT, Decide, Effect, Incoming, Refusal, decoder
from services.common.records import encode as encoded
from services.common.service import Service, _letter_id_reader
from services.common.stage import Stage
from services.consumer import Event, Refused
from services.consumer.server import encode_dead_letter
from services.notification import __main__ as notification_app
from services.notification import replica as notification
from services.notification.domain import shipped_message
from services.order import __main__ as order_app
from services.order.domain import Routing, accept_order
from services.order.status import StatusBoard
from services.payment.domain import settled_payment
from services.plan_stage import Rule
from services.shipment import __main__ as shipment_app
from services.shipment import replica as shipment
from services.shipment.domain import schedule

ORDER: Final = {
    "v": 1, "order_id": "o-1", "customer": "ada", "merchant": "books", "country": "DE", "currency": "EUR",
    "amount_minor": 1250, "card_number": CARD,
}  # fmt: skip
STATUS: Final = {
    "v": 1, "order_id": "o-1", "status": "accepted", "at_us": 5, "payment_accepted": True, "shipment_id": "s",
    "reasons": ["r"], "fingerprint": "f",
}  # fmt: skip
READERS: Final[dict[str, Any]] = {
    Topic.PAYMENTS_REQUESTED: PaymentRequested, Topic.PAYMENTS_SETTLED: PaymentSettled,
    Topic.SHIPMENTS_SCHEDULED: ShipmentScheduled, Topic.NOTIFICATIONS_SENT: NotificationSent,
    Topic.ORDERS_STATUS: OrderStatus, Topic.DEAD_LETTERS: DeadLetter,
}  # fmt: skip
"""Topic → what the next stage decodes its records as."""
NOWHERE: Final = Connection(bootstrap_servers="127.0.0.1:1")
DONE_US: Final = NOW_US + 9
RULES: Final = {(name, topic): rule for name, at in (("shipment", shipment), ("notification", notification))
                for topic, rule in at.RULES.items()}  # fmt: skip
"""Stage and topic → rule of the stage on the consumer that follows plans."""
BATCH_HEADER_BYTES: Final = 61
CRC_BYTES: Final = slice(17, 21)
MAX_BATCH_MB: Final = 1


class Events(Inputs):
    """Records from the order to the notification."""

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self._fence = Fence()
        limit_unpacking(MAX_BATCH_MB)
        order = Incoming("t", 0, 5, NOW_US, b"k", encoded(ORDER), {})
        accepted = accept_order(order, Routing(Partitioner.KG, 9), "k" * 16, NOW_US)
        event = Event("t", 1, 5, b"k", encoded(accepted.request), (), NOW_US, NOW_US, 1, 2)
        payment = settled_payment(event, "payment-0", NOW_US)
        shipped = schedule(payment, NOW_US)
        records = (accepted.request, payment, shipped, shipped_message(shipped, NOW_US))
        self._request, self._payment, self._shipment, self._notification = map(msgspec.to_builtins, records)

    @cached_property
    def _decisions(self) -> list[tuple[str, Topic, Decide]]:
        """Stage, topic and decision of every topic that a Faust service reads."""
        found: list[tuple[str, Topic, Decide]] = []

        async def build() -> None:
            shipment_app.build(NOWHERE, ServiceSettings(data_dir=str(self._folder)))
            notification_app.build(NOWHERE, ServiceSettings(data_dir=str(self._folder)))
            settings = {"data_dir": str(self._folder), "partitioner": Partitioner.EXPLICIT, "demo": True}
            order_app.build(NOWHERE, order_app.OrderSettings(payment_partitions=9, **settings))

        with patch.object(Service, "consume", lambda service, *read: found.append((service.name, *read))):
            asyncio.run(build())
        return found

    def faust_stages(self) -> None:
        """Each stage turns any record into outputs that the next one reads, or into one letter of limited size."""
        values = (b"", b"5", b"-1", b"9" * 17, b"1e3", "²".encode(), b"\xff", b" 5", b"5" * 5000)
        names = ("intended_at", "placed_at", "partition")
        headers = {name: self._chance.choice(values) for name in names if self._chance.random() < 0.3}
        key = self._chance.choice((None, b"k", b"\xff" * 300))
        stamp_us = self._chance.choice((NOW_US, -1, 10**17, 2**63))
        value = self._value(ORDER, ORDER, self._payment, self._shipment, self._notification)
        record = Incoming("t", self._chance.choice((0, 1)), 5, stamp_us, key, value, headers)
        asyncio.run(self._take(record, self._decisions))

    async def _take(self, record: Incoming, decisions: list[tuple[str, Topic, Decide]]) -> None:
        for name, _, decide in decisions:
            written, released = list[Effect](), list[int]()

            async def send(effect: Effect, into: list[Effect] = written) -> "asyncio.Future[None]":
                into.append(effect)
                done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                done.set_result(None)
                return done

            stage = Stage(name, Topic.DEAD_LETTERS, send)
            await stage.take(record, decide, lambda into=released: into.append(1))
            for _ in range(3):
                await asyncio.sleep(0)
            assert released == [1]
            assert sum(one.topic == Topic.DEAD_LETTERS for one in written) == stage.records_refused <= 1
            for effect in written:
                assert len(effect.value or b"") <= LETTER_LIMIT
                assert CARD.encode() not in (effect.value or b""), "a card number"
                assert not isinstance(decoder(READERS[effect.topic])(effect.value), Refusal), "is not read again"

    def plan_stages(self) -> None:
        """Payment settles a record or refuses it. Shipment and Notification decide the same with plans and on Faust."""
        stamp_us = self._chance.choice((0, -1000, 10**18, 2**63))
        declined = self._payment | {"accepted": False, "decline_reason": "card limit"}
        bases = (self._request, self._payment, declined, self._shipment)
        value = encoded(self._chance.choice(bases)) if self._chance.random() < 0.3 else self._value(*bases)
        event = Event("t", 0, 5, b"k", value, (), stamp_us, NOW_US, 1, 2)
        self._settle(settled_payment, event)
        with (
            patch.object(shipment_app, "now_us", lambda: DONE_US),
            patch.object(notification_app, "now_us", lambda: DONE_US),
        ):
            for stage, topic, decide in self._decisions:
                if (rule := RULES.get((stage, topic))) is not None:
                    faust = decide(Incoming("t", 0, 5, stamp_us, b"k", value, {}))
                    found = [one.reasons if isinstance(one, Refusal) else one.value for one in faust]
                    ours = self._settle(rule, event)
                    assert ours == found or (topic == Topic.PAYMENTS_SETTLED and not found), "fenced, or as on Faust"

    def _settle(self, rule: Rule, event: Event) -> list[object]:
        """Return the reasons of a refusal, or the output."""
        letter = b"", b""
        try:
            output = rule(event, "payment-0", DONE_US)
            found = [] if output is None else [encoded(output)]
        except Refused as refused:
            found, letter = [refused.reasons], encode_dead_letter("payment", event, refused, NOW_US)
        assert len(letter[1]) <= LETTER_LIMIT
        return found

    def read_back(self) -> None:
        """A stage reads its own output at its start, though other programs may write there."""
        with suppress(*DECODE_ERRORS):
            self._fence.remember(0, self._record(self._payment))
        with suppress(*DECODE_ERRORS):
            StatusBoard("t", 10).remember(SimpleNamespace(value=self._record(STATUS)))
        for read in (id_reader("shipment_id"), _letter_id_reader("order")):
            with suppress(*DECODE_ERRORS):
                read(self._record(self._shipment, LETTER))

    def batches(self) -> None:
        """A batch that a broker may store is unpacked within its limit, or replaced by one refused record."""
        builder = DefaultRecordBatchBuilder(2, self._chance.choice((0, 1, 2, 3, 4)), 0, -1, -1, -1, 10_000)
        for offset in range(3):
            builder.append(offset, 1, b"key", b"value" * 90, [("name", b"1")])
        data = bytearray(self._damaged(bytes(builder.build()), BATCH_HEADER_BYTES))
        data[8:12] = (len(data) - 12).to_bytes(4)
        data[CRC_BYTES] = calc_crc32c(memoryview(data)[CRC_BYTES.stop :]).to_bytes(4)
        place = TopicPartition("t", 0)
        state = SimpleNamespace(position=0, paused=False, consumed_to=int)
        assignment = SimpleNamespace(active=True, state_value=lambda _: state)
        records = PartitionRecords(place, Records(bytes(data)), None, 0, None, None, True, 0)
        found = FetchResult(place, assignment=assignment, partition_records=records, backoff=0.0).getall()
        assert sum(len(one.value or b"") for one in found) <= min(MAX_BATCH_MB * 10**6, MAX_POLL_BYTES)
