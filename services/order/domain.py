"""What becomes of an order: a payment request in one partition, or a refusal with every reason. Pure."""

import hashlib
from typing import Final, Literal
from zlib import crc32

import msgspec

from contracts.catalogue import MAX_ORDER_BYTES
from contracts.events import (
    INTENDED_AT_HEADER,
    PARTITION_HEADER,
    PLACED_AT_HEADER,
    OrderPlaced,
    PaymentRequested,
    Timeline,
    card_token,
)
from services.common.codec import decoder
from services.common.dead_letters import order_id_in
from services.common.errors import RefusedError
from services.common.identity import effect_id
from services.common.records import Incoming
from services.order.validation import problems_in, problems_of

STAGE: Final = "order"

_decode = decoder(OrderPlaced)


def order_of(record: Incoming) -> OrderPlaced:
    """Return the valid order in `record`. Raises RefusedError with every reason."""
    if record.value is not None and len(record.value) > MAX_ORDER_BYTES:
        raise RefusedError((f"the record has {len(record.value)} bytes, more than the {MAX_ORDER_BYTES} allowed",))
    try:
        order = _decode(record)
    except RefusedError as refused:
        raise _with_all_reasons(record, refused) from refused
    if problems := problems_of(order):
        raise RefusedError(problems, order.order_id)
    return order


def _with_all_reasons(record: Incoming, refused: RefusedError) -> RefusedError:
    """Look again, field by field, where decoding stopped at the first field that did not fit."""
    try:
        fields = msgspec.json.decode(record.value or b"")
    except (msgspec.DecodeError, UnicodeDecodeError):
        return refused
    version_known = isinstance(fields, dict) and refused.reasons[0].startswith("not a")
    if not version_known:
        return refused
    return RefusedError(problems_in(fields) or refused.reasons, order_id_in(record.value or b""))


def payment_partition(customer: str, chosen: int | None, grouping: Literal["key", "explicit"], partitions: int) -> int:
    """Return the partition of payments.requested.

    chosen: what the load asks for, obeyed under `explicit` grouping. Without it, and under `key`, CRC-32 of the
    customer: the same in every process, which Python's own hash is not. Raises RefusedError when out of range.
    """
    if grouping == "explicit" and chosen is not None:
        if chosen >= partitions:
            raise RefusedError((f"header {PARTITION_HEADER} is {chosen}; partitions are 0 to {partitions - 1}",))
        return chosen
    return crc32(customer.encode()) % partitions


def payment_request(order: OrderPlaced, record: Incoming, token_key: str, accepted_us: int) -> PaymentRequested:
    """Return the request for an accepted order. Its times come from the record's headers, or from its timestamp."""
    return PaymentRequested(
        order_id=order.order_id,
        customer=order.customer,
        merchant=order.merchant,
        country=order.country,
        currency=order.currency,
        amount_minor=order.amount_minor,
        card_token=card_token(order.card_number, token_key),
        timeline=Timeline(
            intended_us=record.header_us(INTENDED_AT_HEADER),
            placed_us=record.header_us(PLACED_AT_HEADER),
            accepted_us=accepted_us,
        ),
    )


def payment_effect_id(order_id: str) -> str:
    """Return the id under which the request for an order is written once."""
    return effect_id(order_id, STAGE)


def fingerprint(order: OrderPlaced, token_key: str) -> str:
    """Return a short hash of what was ordered: it tells a repeat from another order under the same id."""
    told = (order.customer, order.merchant, order.country, order.currency, order.amount_minor)
    content = msgspec.json.encode((*told, card_token(order.card_number, token_key)))
    return hashlib.blake2b(content, digest_size=8).hexdigest()
