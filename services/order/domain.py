"""The outcome of an order: a payment request in one partition, or a refusal with every reason. Pure.

Every rule is asked, so that the customer can mend all mistakes in one go.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final, get_type_hints

import msgspec

from contracts.events import (
    COUNTRIES,
    CURRENCIES,
    INTENDED_AT_HEADER,
    MAX_AMOUNT_MINOR,
    MAX_ID_LENGTH,
    MAX_ORDER_BYTES,
    MERCHANTS,
    PARTITION_HEADER,
    PLACED_AT_HEADER,
    SCHEMA_VERSION,
    OrderPlaced,
    PaymentRequested,
    PaymentSettled,
    Timeline,
    card_token,
    luhn_digit,
)
from contracts.validation import DECODE_ERRORS
from grouping import Partitioner
from grouping.source import Source
from services.common.records import Incoming, Refusal, decoder, effect_id, order_id_in

STAGE: Final = "order"
MAX_HEADER_DIGITS: Final = 16
"""Of a number in a header. Microseconds of that length reach to the year 2286; longer ones are no dates."""
CARD_DIGITS: Final = range(12, 20)
BUSY, IDLE = 0.5, 0.1
"""Of W: a partition whose events waited longer is too much for its owner; one where all waited less could have more."""

_decode = decoder(OrderPlaced)


def order_of(record: Incoming) -> OrderPlaced | Refusal:
    """Return the valid order in `record`, or every reason why there is none."""
    value = record.value or b""
    if len(value) > MAX_ORDER_BYTES:
        reason = f"the record has {len(value)} bytes, more than the {MAX_ORDER_BYTES} allowed"
        return Refusal((reason,), order_id_in(value))
    order = _decode(record.value)
    if isinstance(order, Refusal):
        return _with_all_reasons(value, order)
    problems = problems_in(msgspec.structs.asdict(order))
    return Refusal(problems, order.order_id) if problems else order


def _with_all_reasons(value: bytes, refusal: Refusal) -> Refusal:
    """Look again, field by field, where decoding stopped at the first field that did not fit."""
    try:
        fields = msgspec.json.decode(value)
    except DECODE_ERRORS:
        return refusal
    if not isinstance(fields, dict) or not refusal.reasons[0].startswith("not a"):
        return refusal
    return Refusal(problems_in(fields) or refusal.reasons, refusal.order_id)


@dataclass(frozen=True, slots=True)
class Accepted:
    """A valid order, the request for its payment, and the partition of payments.requested that this belongs in."""

    order: OrderPlaced
    request: PaymentRequested
    partition: int


class Routing:
    """Which partition of payments.requested each request goes to: one source, with counts of its own."""

    def __init__(self, grouping: Partitioner, partitions: int, latency_target_s: float = 0.5, number: int = 0) -> None:
        self._partitions = partitions
        self._obeys = grouping is Partitioner.EXPLICIT
        self._busy_s, self._idle_s = BUSY * latency_target_s, IDLE * latency_target_s
        self._source = Source(Partitioner.KG if self._obeys else grouping, partitions, number=number)

    def partition(self, customer: str, chosen: int | None) -> int:
        """Return the partition of a request. Raises ValueError when what was chosen is out of range.

        chosen: what the load asks for, obeyed under `explicit` grouping; without it that is key grouping.
        """
        if not self._obeys or chosen is None:
            return self._source.choose(customer)
        if chosen >= self._partitions:
            raise ValueError(f"header {PARTITION_HEADER} is {chosen}; partitions are 0 to {self._partitions - 1}")
        return chosen

    def settled(self, payment: PaymentSettled) -> None:
        """Take in how long the request waited in its partition, as the payment says."""
        at = payment.timeline
        if at.partition is None or at.accepted_us is None or at.done_us is None or at.partition >= self._partitions:
            return
        waited_s = (at.done_us - at.accepted_us) / 1e6
        self._source.record_wait(at.partition, waited_s, at.done_us / 1e6, busy_s=self._busy_s, idle_s=self._idle_s)


def accepted(record: Incoming, routing: Routing, token_key: str, at_us: int) -> Accepted | Refusal:
    """Return what an order placed becomes. at_us: when it was accepted.

    Times come from the record's headers, or from its timestamp. A header that is no number, or no partition, refuses
    the order.
    """
    order = order_of(record)
    if isinstance(order, Refusal):
        return order
    try:
        intended_us, placed_us = (_number_in(record, name) for name in (INTENDED_AT_HEADER, PLACED_AT_HEADER))
        partition = routing.partition(order.customer, _number_in(record, PARTITION_HEADER))
    except ValueError as wrong:
        return Refusal((str(wrong),), order.order_id)
    request = PaymentRequested(
        **order.purchase(),
        card_token=card_token(order.card_number, token_key),
        timeline=Timeline(
            intended_us=record.timestamp_us if intended_us is None else intended_us,
            placed_us=record.timestamp_us if placed_us is None else placed_us,
            accepted_us=at_us,
        ),
    )
    return Accepted(order, request, partition)


def _number_in(record: Incoming, header: str) -> int | None:
    """Return a header as a number, None without one. Raises ValueError for what is no decimal number."""
    text = record.headers.get(header)
    if text is None:
        return None
    if not text.isdigit() or len(text) > MAX_HEADER_DIGITS:
        raise ValueError(f"header {header} is no decimal number of at most {MAX_HEADER_DIGITS} digits: {text[:40]!r}")
    return int(text)


def payment_effect_id(order_id: str) -> str:
    """Return the id under which the request for an order is written once."""
    return effect_id(order_id, STAGE)


def fingerprint(order: OrderPlaced, token_key: str) -> str:
    """Return a short hash of what was ordered: it tells a repeat from another order under the same id."""
    told = (order.customer, order.merchant, order.country, order.currency, order.amount_minor)
    content = msgspec.json.encode((*told, card_token(order.card_number, token_key)))
    return blake2b(content, digest_size=8).hexdigest()


def _identifier(text: str) -> str | None:
    if not text or len(text) > MAX_ID_LENGTH:
        return f"must have 1 to {MAX_ID_LENGTH} characters, not {len(text)}"
    return None if text.isprintable() else "holds characters that cannot be printed"


def _one_of(known: tuple[str, ...], what: str) -> Callable[[str], str | None]:
    members = frozenset(known)
    return lambda text: None if text in members else f"{text[:MAX_ID_LENGTH]!r} is no known {what}"


def _amount(amount_minor: int) -> str | None:
    if amount_minor <= 0:
        return f"must be above 0, not {amount_minor}"
    return None if amount_minor <= MAX_AMOUNT_MINOR else f"must be at most {MAX_AMOUNT_MINOR}, not {amount_minor}"


def _card(number: str) -> str | None:
    # The number itself is never repeated: reasons travel to the customer and into the dead letters.
    if not (number.isascii() and number.isdigit() and len(number) in CARD_DIGITS):
        return f"must be {CARD_DIGITS.start} to {CARD_DIGITS.stop - 1} digits"
    return None if number[-1] == luhn_digit(number[:-1]) else "fails the Luhn check"


_RULES: Final[tuple[tuple[str, Callable[[Any], str | None]], ...]] = (
    ("order_id", _identifier),
    ("customer", _identifier),
    ("merchant", _one_of(MERCHANTS, "merchant")),
    ("country", _one_of(COUNTRIES, "country")),
    ("currency", _one_of(CURRENCIES, "currency")),
    ("amount_minor", _amount),
    ("card_number", _card),
)
_TYPES: Final = get_type_hints(OrderPlaced)  # without their limits: of those the rules tell in plainer words


def problems_in(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every reason why these decoded JSON fields make no acceptable order: missing, of a wrong type, refused."""
    problems = []
    for name, rule in _RULES:
        if name not in fields:
            problems.append(f"{name}: missing")
            continue
        try:
            value = msgspec.convert(fields[name], _TYPES[name])
        except msgspec.ValidationError as wrong:
            problems.append(f"{name}: {wrong}")
            continue
        if refused := rule(value):
            problems.append(f"{name}: {refused}")
    version = fields.get("v", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        problems.append(f"v: schema version {version!r:.20} is unknown; this service understands {SCHEMA_VERSION}")
    return tuple(problems)
