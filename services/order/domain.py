"""Decides an order. The outcome is a payment request in one partition, or a refusal with every reason.

All rules are checked, so that the customer can fix all mistakes at once.
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
from partitioners import Partitioner
from partitioners.source import Source
from services.common.records import Incoming, Refusal, decoder, effect_id, encode, order_id_in

STAGE: Final = "order"
MAX_HEADER_DIGITS: Final = 16
"""Longest number in a header: microseconds of this length reach the year 2286."""
CARD_DIGITS: Final = range(12, 20)
BUSY_WAIT, IDLE_WAIT = 0.5, 0.1
"""Shares of W: a partition is busy if an event waited longer than BUSY_WAIT, idle if all waited less than IDLE_WAIT."""

_decode = decoder(OrderPlaced)
_decode_request = decoder(PaymentRequested)


def order_of(record: Incoming) -> OrderPlaced | Refusal:
    """Return the valid order in `record`, or a refusal with every reason."""
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
    """Return a refusal with the problems of all fields, because decoding stops at the first one."""
    try:
        fields = msgspec.json.decode(value)
    except DECODE_ERRORS:
        return refusal
    if not isinstance(fields, dict) or not refusal.reasons[0].startswith("not a"):
        return refusal
    return Refusal(problems_in(fields) or refusal.reasons, refusal.order_id)


@dataclass(frozen=True, slots=True)
class AcceptedOrder:
    """A valid order, its payment request as it is written, and the request's partition of payments.requested."""

    order: OrderPlaced
    request: PaymentRequested
    request_value: bytes
    partition: int


class Routing:
    """Chooses the partition of payments.requested for each request. It counts only the requests of this process."""

    def __init__(self, rule: Partitioner, partitions: int, latency_target_s: float = 0.5, number: int = 0) -> None:
        self._partitions = partitions
        self._follows_load = rule is Partitioner.EXPLICIT
        self._busy_s, self._idle_s = BUSY_WAIT * latency_target_s, IDLE_WAIT * latency_target_s
        self._source = Source(Partitioner.KG if self._follows_load else rule, partitions, number=number)

    def partition(self, customer: str, chosen: int | None) -> int:
        """Return the partition of a request. Raises ValueError if `chosen` is out of range.

        chosen: partition requested by the load, used by `explicit` only. If it is None, `explicit` chooses as `kg`.
        """
        if not self._follows_load or chosen is None:
            return self._source.choose(customer)
        if chosen >= self._partitions:
            raise ValueError(f"header {PARTITION_HEADER} is {chosen}; partitions are 0 to {self._partitions - 1}")
        return chosen

    def record_wait(self, payment: PaymentSettled) -> None:
        """Record the time from a request's acceptance to the end of its service, from the timeline of its payment."""
        at = payment.timeline
        if at.partition is None or at.accepted_us is None or at.done_us is None or at.partition >= self._partitions:
            return
        waited_s = (at.done_us - at.accepted_us) / 1e6
        self._source.record_wait(at.partition, waited_s, at.done_us / 1e6, busy_s=self._busy_s, idle_s=self._idle_s)


def accept_order(record: Incoming, routing: Routing, token_key: str, at_us: int) -> AcceptedOrder | Refusal:
    """Return the outcome of a placed order. at_us: time of acceptance.

    Times come from the record's headers, else from its timestamp. The outcome is a refusal if a number or partition in
    a header is invalid, or if Payment would refuse the request, for example without a usable timestamp.
    """
    order = order_of(record)
    if isinstance(order, Refusal):
        return order
    try:
        intended_us, placed_us = (_number_in(record, name) for name in (INTENDED_AT_HEADER, PLACED_AT_HEADER))
        partition = routing.partition(order.customer, _number_in(record, PARTITION_HEADER))
    except ValueError as error:
        return Refusal((str(error),), order.order_id)
    request = PaymentRequested(
        **order.purchase(),
        card_token=card_token(order.card_number, token_key),
        timeline=Timeline(
            intended_us=record.timestamp_us if intended_us is None else intended_us,
            placed_us=record.timestamp_us if placed_us is None else placed_us,
            accepted_us=at_us,
        ),
    )
    value = encode(request)
    checked = _decode_request(value)
    return checked if isinstance(checked, Refusal) else AcceptedOrder(order, request, value, partition)


def _number_in(record: Incoming, header: str) -> int | None:
    text = record.headers.get(header)
    if text is None:
        return None
    if not text.isdigit() or len(text) > MAX_HEADER_DIGITS:
        raise ValueError(f"header {header} must have at most {MAX_HEADER_DIGITS} decimal digits, not {text[:40]!r}")
    return int(text)


def payment_effect_id(order_id: str) -> str:
    """Return the effect id of the payment request of an order."""
    return effect_id(order_id, STAGE)


def fingerprint(order: OrderPlaced, token_key: str) -> str:
    """Return a short hash of the order's content. It distinguishes a repeat from another order with the same id."""
    fields = (order.customer, order.merchant, order.country, order.currency, order.amount_minor)
    content = msgspec.json.encode((*fields, card_token(order.card_number, token_key)))
    return blake2b(content, digest_size=8).hexdigest()


def _identifier(text: str) -> str | None:
    if not text or len(text) > MAX_ID_LENGTH:
        return f"must have 1 to {MAX_ID_LENGTH} characters, not {len(text)}"
    return None if text.isprintable() else "has characters that cannot be printed"


def _one_of(names: tuple[str, ...], what: str) -> Callable[[str], str | None]:
    members = frozenset(names)
    return lambda text: None if text in members else f"{text[:MAX_ID_LENGTH]!r} is not a known {what}"


def _amount(amount_minor: int) -> str | None:
    if amount_minor <= 0:
        return f"must be above 0, not {amount_minor}"
    return None if amount_minor <= MAX_AMOUNT_MINOR else f"must be at most {MAX_AMOUNT_MINOR}, not {amount_minor}"


def _card(number: str) -> str | None:
    # Never quote the number: reasons are sent to the customer and written to dead letters.
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
_TYPES: Final = get_type_hints(OrderPlaced)  # without their limits: the rules report those in plainer words


def problems_in(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """Return every problem of an order's decoded JSON fields: a field is missing, has a wrong type or breaks a rule."""
    problems = []
    for name, rule in _RULES:
        if name not in fields:
            problems.append(f"{name}: missing")
            continue
        try:
            value = msgspec.convert(fields[name], _TYPES[name])
        except msgspec.ValidationError as error:
            problems.append(f"{name}: {error}")
            continue
        if problem := rule(value):
            problems.append(f"{name}: {problem}")
    version = fields.get("v", SCHEMA_VERSION)
    if (type(version), version) != (int, SCHEMA_VERSION):  # `true` equals 1
        problems.append(f"v: schema version {version!r:.20} is unknown; this service understands {SCHEMA_VERSION}")
    return tuple(problems)
