"""The rules of payment. The same request always gets the same verdict, so a repeated event has no effect."""

import hashlib
import math
import uuid
from typing import Final

import msgspec

from contracts.events import COUNTRIES, MAX_AMOUNT_MINOR, MAX_ORDER_BYTES, MERCHANTS, PaymentRequested, PaymentSettled
from services.common.records import Refusal, decoder
from services.consumer import Event, Refused

MAX_REQUEST_BYTES: Final = 4 * MAX_ORDER_BYTES
"""Largest accepted request. Requests by Order are far smaller."""

PAYMENT_IDS: Final = uuid.UUID("6f0d4a52-54c6-5d0c-9a3e-1c8f6f2f7a10")  # namespace of payment ids
CARD_LIMITS_MINOR: Final = (100_000, 250_000, 500_000, 1_000_000, 2_500_000)
"""Limits of card issuers for one payment, in minor units of its currency. The card's token selects one."""
RISK_LIMIT: Final = 0.8  # payments with a higher risk score are declined
OVER_LIMIT: Final = "over the card's limit"
TOO_RISKY: Final = "risk score above the limit"

AMOUNT_WEIGHT: Final = 0.5
COUNTRY_WEIGHT: Final = 0.2
MERCHANT_WEIGHT: Final = 0.3  # the three weights add up to 1, so the score is in 0..1

COUNTRY_RISK: Final = dict.fromkeys(COUNTRIES, 0.1) | {"GB": 0.2, "IT": 0.2, "ES": 0.2, "US": 0.4}
MERCHANT_RISK: Final = dict.fromkeys(MERCHANTS, 0.1) | {
    "electronics": 0.6, "games": 0.5, "jewellery": 0.9, "travel": 0.7, "wine": 0.3,
}  # fmt: skip
UNKNOWN_RISK: Final = 1.0  # for a country or merchant that is not in the catalogue

_decode = decoder(PaymentRequested)


def payment_id(order_id: str) -> str:
    """Return the id of the order's payment. It depends only on the order id, so a repeat is recognised."""
    return str(uuid.uuid5(PAYMENT_IDS, order_id))


def card_limit_minor(card_token: str) -> int:
    """Return the limit of the card for one payment, in minor units."""
    first = hashlib.blake2b(card_token.encode(), digest_size=1).digest()[0]
    return CARD_LIMITS_MINOR[first % len(CARD_LIMITS_MINOR)]


def risk_score(amount_minor: int, country: str, merchant: str) -> float:
    """Return the risk from 0 to 1. It grows with the logarithm of the amount."""
    amount = min(1.0, math.log1p(amount_minor) / math.log1p(MAX_AMOUNT_MINOR))
    score = (
        AMOUNT_WEIGHT * amount
        + COUNTRY_WEIGHT * COUNTRY_RISK.get(country, UNKNOWN_RISK)
        + MERCHANT_WEIGHT * MERCHANT_RISK.get(merchant, UNKNOWN_RISK)
    )
    return round(min(1.0, score), 4)


def authorise(card_token: str, amount_minor: int, country: str, merchant: str) -> tuple[str | None, float]:
    """Decide on one payment of a positive amount. Return the reason of a decline (None: accepted) and the risk."""
    score = risk_score(amount_minor, country, merchant)
    if amount_minor > card_limit_minor(card_token):
        return OVER_LIMIT, score
    return TOO_RISKY if score > RISK_LIMIT else None, score


def requested_payment(value: bytes | None) -> PaymentRequested:
    """Decode one record. Raises Refused if it is empty, too large or malformed, or has a wrong version or amount."""
    if value is not None and len(value) > MAX_REQUEST_BYTES:
        raise Refused(f"the record has {len(value)} bytes; at most {MAX_REQUEST_BYTES} are accepted")
    requested = _decode(value)
    if isinstance(requested, Refusal):
        raise Refused(*requested.reasons)
    if not 0 < requested.amount_minor <= MAX_AMOUNT_MINOR:
        raise Refused(f"amount_minor {requested.amount_minor} must be between 1 and {MAX_AMOUNT_MINOR}")
    return requested


def settled_payment(event: Event, replica: str, done_us: int) -> PaymentSettled:
    """Return the settled payment of a request, with this stage's part of the timeline. Raises Refused."""
    requested = requested_payment(event.value)
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
