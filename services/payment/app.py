"""Payment as a service: each event takes its service time on the replica's one server, then its verdict is written.

One event in, one record out: decode, authorise, stamp the timeline. The rules are in `domain`.
"""

import asyncio
from typing import Final

import msgspec

from contracts.catalogue import MAX_AMOUNT_MINOR, MAX_ORDER_BYTES
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import PaymentRequested, PaymentSettled
from contracts.topics import Group, Topic, qualified
from services.common.dead_letters import dead_letter, letter_key
from services.common.records import Refusal, decoder, encode, order_id_in
from services.consumer import Event, PlanConsumer, Topics
from services.payment.domain import authorise, payment_id
from services.payment.pace import Pace
from services.payment.settings import ReplicaSettings, options_of

MAX_REQUEST_BYTES: Final = 4 * MAX_ORDER_BYTES
"""An order with its token and timeline is far below; what is above was not written by Order."""

_decode = decoder(PaymentRequested)


class PaymentService:
    """One replica of the Payment group."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        self._settings = settings
        self._pace = Pace()
        self._last_done_us = 0
        self._names = named = {topic: qualified(connection.namespace, topic) for topic in Topic}
        self.consumer = PlanConsumer(
            settings.replica,
            connection,
            Topics(
                group=qualified(connection.namespace, Group.PAYMENT),
                events=named[Topic.PAYMENTS_REQUESTED],
                plans=named[Topic.PLANS],
                progress=named[Topic.PROGRESS],
                others={
                    named[Topic.PAYMENTS_REQUESTED]: max(1, settings.payment_partitions),
                    named[Topic.PAYMENTS_SETTLED]: 1,
                    named[Topic.DEAD_LETTERS]: 1,
                },
            ),
            self.handle,
            options=options_of(settings),
            busy_s=lambda: self._pace.busy_s,
        )

    async def handle(self, event: Event) -> "asyncio.Future[None]":
        """Serve one event; done once the broker has its output."""
        clock = asyncio.get_running_loop().time
        is_idle = event.received_us > self._last_done_us
        finish_s = self._pace.begin(clock(), self._settings.service_time_of(event.key), idle=is_idle)
        await asyncio.sleep(max(0.0, finish_s - clock()))
        self._last_done_us = now_us()
        topic, key, value = settle(event, self._settings.replica, self._last_done_us)
        return await self.consumer.send(self._names[topic], key, value)


def settle(event: Event, replica: str, done_us: int) -> tuple[Topic, bytes | None, bytes]:
    """Return topic, key and value of what is written before the event counts as done.

    A settled payment for a good event, a dead letter for any other. done_us: when its service ended.
    """
    requested = requested_payment(event.value)
    if isinstance(requested, Refusal):
        letter = dead_letter(Group.PAYMENT, event, requested, done_us)
        return Topic.DEAD_LETTERS, letter_key(event.key), encode(letter)
    settled = settled_payment(requested, event, replica, done_us)
    return Topic.PAYMENTS_SETTLED, settled.order_id.encode(), encode(settled)


def requested_payment(value: bytes | None) -> PaymentRequested | Refusal:
    """Decode one record. Refused: empty, too large, malformed, of an unknown version, an impossible amount."""
    if value is not None and len(value) > MAX_REQUEST_BYTES:
        reason = f"the record has {len(value)} bytes; at most {MAX_REQUEST_BYTES} are accepted"
        return Refusal((reason,), order_id_in(value))
    requested = _decode(value)
    if isinstance(requested, PaymentRequested) and not 0 < requested.amount_minor <= MAX_AMOUNT_MINOR:
        reason = f"amount_minor {requested.amount_minor} must lie between 1 and {MAX_AMOUNT_MINOR}"
        return Refusal((reason,), requested.order_id)
    return requested


def settled_payment(requested: PaymentRequested, event: Event, replica: str, done_us: int) -> PaymentSettled:
    """Return the verdict on `requested`, with this stage's part of the timeline."""
    decline_reason, risk_score = authorise(
        requested.card_token, requested.amount_minor, requested.country, requested.merchant
    )
    timeline = msgspec.structs.replace(
        requested.timeline,
        received_us=event.received_us,
        done_us=done_us,
        partition=event.partition,
        offset=event.offset,
        replica=replica,
        epoch=event.epoch,
        generation=event.generation,
    )
    return PaymentSettled(
        payment_id=payment_id(requested.order_id),
        **requested.purchase(),
        accepted=decline_reason is None,
        decline_reason=decline_reason,
        risk_score=risk_score,
        timeline=timeline,
    )
