"""One event in, one record out: decode, authorise, stamp the timeline. The rules are in `domain`."""

from dataclasses import dataclass
from typing import Final

import msgspec

from contracts.catalogue import MAX_AMOUNT_MINOR, MAX_ORDER_BYTES
from contracts.events import DeadLetter, PaymentRequested, PaymentSettled, UnknownVersionError, check_version
from contracts.topics import Group, Topic
from services.common.dead_letters import letter, order_id_in
from services.consumer import Event
from services.payment.domain import authorise

MAX_REQUEST_BYTES: Final = 4 * MAX_ORDER_BYTES
"""An order with its token and timeline is far below; what is above was not written by Order."""

_request = msgspec.json.Decoder(PaymentRequested)
_encoder = msgspec.json.Encoder()


class RefusedError(ValueError):
    """The event cannot be settled; the message says why."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """One record to write before the event counts as done. Topic without the run's namespace."""

    topic: Topic
    key: bytes | None
    value: bytes


def settle(event: Event, replica: str, done_us: int) -> Outgoing:
    """Return a settled payment for a good event, a dead letter for any other. `done_us`: when its service ended."""
    try:
        settled = settled_payment(requested_payment(event.value), event, replica, done_us)
    except RefusedError as refused:
        return Outgoing(Topic.DEAD_LETTERS, event.key, _encoder.encode(refusal(event, str(refused), done_us)))
    return Outgoing(Topic.PAYMENTS_SETTLED, settled.order_id.encode(), _encoder.encode(settled))


def refusal(event: Event, reason: str, at_us: int) -> DeadLetter:
    """Return the dead letter of a refused event."""
    return letter(
        Group.PAYMENT,
        topic=event.topic,
        partition=event.partition,
        offset=event.offset,
        value=event.value,
        reasons=(reason,),
        order_id=order_id_in(event.value or b""),
        at_us=at_us,
    )


def requested_payment(value: bytes | None) -> PaymentRequested:
    """Decode one record. Raises RefusedError: empty, too large, malformed, of unknown version, impossible amount."""
    if value is None:
        raise RefusedError("the record has no value")
    if len(value) > MAX_REQUEST_BYTES:
        raise RefusedError(f"the record has {len(value)} bytes; at most {MAX_REQUEST_BYTES} are accepted")
    try:
        check_version(value)
        requested = _request.decode(value)
    except (msgspec.DecodeError, UnknownVersionError, RecursionError) as wrong:
        raise RefusedError(str(wrong)) from wrong
    if not 0 < requested.amount_minor <= MAX_AMOUNT_MINOR:
        raise RefusedError(f"amount_minor {requested.amount_minor} must lie between 1 and {MAX_AMOUNT_MINOR}")
    return requested


def settled_payment(requested: PaymentRequested, event: Event, replica: str, done_us: int) -> PaymentSettled:
    """Return the verdict on `requested`, with this stage's part of the timeline."""
    verdict = authorise(
        order_id=requested.order_id,
        card_token=requested.card_token,
        amount_minor=requested.amount_minor,
        country=requested.country,
        merchant=requested.merchant,
    )
    timeline = msgspec.structs.replace(
        requested.timeline,
        received_us=event.received_us,
        done_us=done_us,
        partition=event.partition,
        offset=event.offset,
        replica=replica,
        epoch=event.epoch,
    )
    return PaymentSettled(
        payment_id=verdict.payment_id,
        order_id=requested.order_id,
        customer=requested.customer,
        merchant=requested.merchant,
        country=requested.country,
        currency=requested.currency,
        amount_minor=requested.amount_minor,
        accepted=verdict.accepted,
        decline_reason=verdict.decline_reason,
        risk_score=verdict.risk_score,
        timeline=timeline,
    )
