"""The events of the pipeline as JSON. Times are in µs since the epoch (UTC). Fields: docs/reference/records.md."""

from enum import StrEnum
from hashlib import blake2b
from typing import Annotated, Any, Final

import msgspec

from contracts.fields import Amount, Count, Epoch, Generation, Moment, Offset, Partition, Text

SCHEMA_VERSION: Final = 1
MAX_ID_LENGTH: Final = 64

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_LENGTH)]
"""Text of limited length. Every stage rejects longer ids, so that no field grows from stage to stage."""


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Time of an event at each stage. Every stage adds its own times and passes on the others."""

    intended_us: Moment
    placed_us: Moment
    accepted_us: Moment | None = None
    received_us: Moment | None = None
    done_us: Moment | None = None
    shipped_us: Moment | None = None
    notified_us: Moment | None = None
    partition: Partition | None = None
    offset: Offset | None = None
    replica: Text | None = None
    epoch: Epoch | None = None
    generation: Generation | None = None


class _Purchase(msgspec.Struct, frozen=True, kw_only=True):
    order_id: Id
    customer: Id
    merchant: Id
    country: Id
    currency: Id
    amount_minor: Amount

    def purchase(self) -> dict[str, Any]:
        """Return the fields that every stage up to Payment passes on."""
        return {name: getattr(self, name) for name in _Purchase.__struct_fields__}


class OrderPlaced(_Purchase, frozen=True, kw_only=True):
    """An order as a customer places it."""

    card_number: Id
    v: int = SCHEMA_VERSION


class PaymentRequested(_Purchase, frozen=True, kw_only=True):
    """A valid order for Payment. A token replaces the card number."""

    card_token: Id
    timeline: Timeline
    v: int = SCHEMA_VERSION


class PaymentSettled(_Purchase, frozen=True, kw_only=True):
    """Payment's result. `payment_id` depends only on the order id, so that repeats are recognised."""

    payment_id: Id
    accepted: bool
    decline_reason: Text | None
    risk_score: float
    timeline: Timeline
    v: int = SCHEMA_VERSION


class ShipmentScheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A parcel for an accepted payment."""

    shipment_id: Id
    order_id: Id
    payment_id: Id
    customer: Id
    country: Id
    parcel: Id
    carrier: Id
    promised_on: Id
    timeline: Timeline
    v: int = SCHEMA_VERSION


class NotificationSent(msgspec.Struct, frozen=True, kw_only=True):
    """The message to the customer, which completes the timeline."""

    notification_id: Id
    order_id: Id
    payment_id: Id
    shipment_id: Id | None
    customer: Id
    accepted: bool
    text: Text
    timeline: Timeline
    v: int = SCHEMA_VERSION


class Status(StrEnum):
    """State of an order."""

    REJECTED = "rejected"
    ACCEPTED = "accepted"
    DECLINED = "declined"
    SETTLED = "settled"
    NOTIFIED = "notified"


class OrderStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of an order, which Order keeps and returns for GET /orders/{id}."""

    order_id: Id
    status: Status
    at_us: Moment
    payment_accepted: bool | None = None
    shipment_id: str | None = None
    reasons: tuple[str, ...] = ()
    fingerprint: str = ""
    v: int = SCHEMA_VERSION


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a stage refused, with every reason."""

    letter_id: str
    stage: str
    topic: str
    partition: Partition
    offset: Offset
    reasons: tuple[str, ...]
    order_id: str | None
    payload: str
    payload_bytes: Count = 0
    payload_hash: str = ""
    at_us: Moment
    v: int = SCHEMA_VERSION


INTENDED_AT_HEADER: Final = "intended_at"
"""Header with the intended send time (epoch µs as decimal text). Without it, the record's timestamp is used."""
PLACED_AT_HEADER: Final = "placed_at"
PARTITION_HEADER: Final = "partition"
"""Header with the partition that the load generator chose, as decimal text. The partitioner `explicit` uses it."""
DEMO_TOKEN_KEY: Final = "tailpack-demo"  # noqa: S105 a default for demonstrations
"""Public key for the tokens of invented cards. Order accepts it only in demonstrations."""


def card_token(card_number: str, key: str) -> str:
    """Return the token that replaces the card number in the records of Order: a keyed hash, equal for equal cards."""
    return f"tok_{blake2b(card_number.encode(), key=key.encode()[:64], digest_size=12).hexdigest()}"


CURRENCIES: Final = ("EUR", "USD", "GBP", "CHF", "SEK")
COUNTRIES: Final = ("AT", "CH", "DE", "ES", "FR", "GB", "IT", "NL", "SE", "US")
MERCHANTS: Final = (
    "bakery", "bicycles", "books", "cinema", "electronics", "florist", "furniture", "games", "garden", "grocery",
    "hardware", "jewellery", "music", "opticians", "pharmacy", "shoes", "stationery", "toys", "travel", "wine",
)  # fmt: skip
MAX_AMOUNT_MINOR: Final = 10_000_000  # largest order, in minor units
MAX_ORDER_BYTES: Final = 16_384  # largest accepted order record or request body


def luhn_digit(digits: str) -> str:
    """Return the check digit that makes `digits` + digit pass the Luhn test (ISO/IEC 7812-1, annex B)."""
    doubled = (int(digit) * 2 for digit in digits[::-2])
    total = sum(value - 9 if value > 9 else value for value in doubled) + sum(map(int, digits[-2::-2]))
    return str(-total % 10)
