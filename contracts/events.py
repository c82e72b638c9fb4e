"""The events of the pipeline. Values are JSON; every record carries `v`, its schema version.

Times are integer microseconds since the epoch (UTC), read from the wall clock of the machine that stamps them.
"""

from enum import StrEnum
from hashlib import blake2b
from typing import Any, Final

import msgspec

SCHEMA_VERSION: Final = 1


class Timeline(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """When an event passed each stage; every stage adds its own and passes the rest on."""

    intended_us: int
    """When the schedule wanted the event sent. Latency starts here."""
    placed_us: int
    """When the generator or the API handed it to its Kafka client."""
    accepted_us: int | None = None
    """When Order accepted it; absent in payment-only runs."""
    received_us: int | None = None
    """When a Payment replica polled it."""
    done_us: int | None = None
    """When that replica finished serving it. Latency of the SLA stage ends here."""
    shipped_us: int | None = None
    notified_us: int | None = None
    partition: int | None = None
    """Partition, offset: where the event lay in payments.requested."""
    offset: int | None = None
    replica: str | None = None
    """Name of the Payment replica that served it."""
    epoch: int | None = None
    """Epoch of the plan in force at that replica; 0 without a plan."""
    generation: int | None = None
    """Generation of the group in which that replica took the partition. With the epoch it is the record's fencing
    token; absent where no group of ours hands partitions over."""


class _Purchase(msgspec.Struct, frozen=True, kw_only=True):
    order_id: str
    customer: str
    merchant: str
    country: str
    """ISO 3166 alpha-2 code of the customer's country."""
    currency: str
    amount_minor: int
    """In the currency's minor unit (cents)."""

    def purchase(self) -> dict[str, Any]:
        """Return the fields that every stage up to the payment passes on."""
        return {name: getattr(self, name) for name in _Purchase.__struct_fields__}


class OrderPlaced(_Purchase, frozen=True, kw_only=True):
    """What a customer asks for."""

    card_number: str
    v: int = SCHEMA_VERSION


class PaymentRequested(_Purchase, frozen=True, kw_only=True):
    """A valid order on its way to Payment. The card number has been replaced by a token."""

    card_token: str
    timeline: Timeline
    v: int = SCHEMA_VERSION


class PaymentSettled(_Purchase, frozen=True, kw_only=True):
    """Payment's verdict. `payment_id` follows from the order id alone, so a repeat is recognised."""

    payment_id: str
    accepted: bool
    decline_reason: str | None
    risk_score: float
    """0 (harmless) to 1."""
    timeline: Timeline
    v: int = SCHEMA_VERSION


class ShipmentScheduled(msgspec.Struct, frozen=True, kw_only=True):
    """A parcel for an accepted payment."""

    shipment_id: str
    order_id: str
    payment_id: str
    customer: str
    country: str
    parcel: str
    carrier: str
    promised_on: str
    """ISO date."""
    timeline: Timeline
    v: int = SCHEMA_VERSION


class NotificationSent(msgspec.Struct, frozen=True, kw_only=True):
    """The message to the customer; closes the timeline."""

    notification_id: str
    order_id: str
    payment_id: str
    shipment_id: str | None
    """Absent where the payment was declined."""
    customer: str
    accepted: bool
    text: str
    timeline: Timeline
    v: int = SCHEMA_VERSION


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A record that a stage refused, and every reason why."""

    letter_id: str
    """Topic, partition and offset of the refused record: a repeat is recognised."""
    stage: str
    topic: str
    partition: int
    offset: int
    reasons: tuple[str, ...]
    order_id: str | None
    payload: str
    """The refused value as text, cut to 4 KiB, digits of card numbers masked."""
    at_us: int
    v: int = SCHEMA_VERSION


INTENDED_AT_HEADER: Final = "intended_at"
"""Microseconds as decimal text. Without it the record's own timestamp is the intended time."""
PLACED_AT_HEADER: Final = "placed_at"
PARTITION_HEADER: Final = "partition"
"""Payment partition chosen by the load, as decimal text; used by the `explicit` grouping."""


class Grouping(StrEnum):
    """Who chooses the payment partition of an event."""

    EXPLICIT = "explicit"
    """The load; in the pipeline by the header `partition`, without which an order goes as under `key`."""
    KEY = "key"
    """A hash: Order's of the customer, in payment-only runs the Kafka client's of the order id."""


DEMO_TOKEN_KEY: Final = "tailpack-demo"  # noqa: S105 a default for demonstrations
"""Key of card tokens unless Order is told another one, which everything but a demonstration should do."""


def card_token(card_number: str, key: str) -> str:
    """Return what stands for a card behind Order: a keyed hash, equal for equal cards."""
    return f"tok_{blake2b(card_number.encode(), key=key.encode()[:64], digest_size=12).hexdigest()}"
