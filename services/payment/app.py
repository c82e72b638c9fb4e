"""Payment as a service: each event takes its service time on the replica's one server, then its verdict is written.

One event in, one record out: decode, authorise, stamp the timeline. The rules are in `domain`. What cannot be settled
is the consumer's to write to the dead letters.
"""

import asyncio
from typing import Final

import msgspec

from contracts.connection import Connection
from contracts.events import MAX_AMOUNT_MINOR, MAX_ORDER_BYTES, PaymentRequested, PaymentSettled
from contracts.topics import Group, Topic, qualified
from services.common.records import Refusal, decoder, encode
from services.consumer import Event, PlanConsumer, Refused
from services.consumer.environment import topics_of
from services.consumer.metrics import Latencies
from services.payment.domain import authorise, payment_id
from services.payment.pace import Server, ServiceTimes
from services.payment.settings import ReplicaSettings, options_of

MAX_REQUEST_BYTES: Final = 4 * MAX_ORDER_BYTES
"""An order with its token and timeline is far below; what is above was not written by Order."""

_decode = decoder(PaymentRequested)


class PaymentService:
    """One replica of the Payment group."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        self._settings = settings
        self._settled = qualified(connection.namespace, Topic.PAYMENTS_SETTLED)
        self._server = Server(ServiceTimes(settings))
        options = options_of(settings)
        self._latencies = Latencies(options)
        self.consumer = PlanConsumer(
            settings.replica,
            connection,
            topics_of(
                connection,
                settings,
                dead_letters=qualified(connection.namespace, Topic.DEAD_LETTERS),
                stage=Group.PAYMENT,
                others={
                    settings.topic_in(connection.namespace): max(1, settings.payment_partitions),
                    self._settled: 1,
                },
            ),
            self.handle,
            options=options,
            busy_s=lambda: self._server.busy_s,
            latencies=self._latencies,
        )

    async def handle(self, event: Event) -> "asyncio.Future[None]":
        """Serve one event; done once the broker has its output."""
        done_us = await self._server.serve(event.received_us, event.key)
        settled = settled_payment(requested_payment(event.value), event, self._settings.replica, done_us)
        self._latencies.observe((done_us - settled.timeline.intended_us) / 1e6)
        return await self.consumer.send(self._settled, settled.order_id.encode(), encode(settled))


def settle(event: Event, replica: str, done_us: int) -> tuple[bytes, bytes]:
    """Return key and value of the settled payment; done_us: when its service ended. Raises Refused."""
    settled = settled_payment(requested_payment(event.value), event, replica, done_us)
    return settled.order_id.encode(), encode(settled)


def requested_payment(value: bytes | None) -> PaymentRequested:
    """Decode one record. Raises Refused: empty, too large, malformed, an unknown version, an impossible amount."""
    if value is not None and len(value) > MAX_REQUEST_BYTES:
        raise Refused(f"the record has {len(value)} bytes; at most {MAX_REQUEST_BYTES} are accepted")
    requested = _decode(value)
    if isinstance(requested, Refusal):
        raise Refused(*requested.reasons)
    if not 0 < requested.amount_minor <= MAX_AMOUNT_MINOR:
        raise Refused(f"amount_minor {requested.amount_minor} must lie between 1 and {MAX_AMOUNT_MINOR}")
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
