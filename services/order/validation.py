"""Is this order acceptable? Every rule is asked, so that the customer can mend all mistakes in one go."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from contracts.catalogue import COUNTRIES, CURRENCIES, MAX_AMOUNT_MINOR, MERCHANTS
from contracts.events import SCHEMA_VERSION, OrderPlaced

MAX_ID_LENGTH: Final = 64
CARD_DIGITS: Final = range(12, 20)

_LUHN_DOUBLED: Final = (0, 2, 4, 6, 8, 1, 3, 5, 7, 9)
"""Digit → the digit sum of its double."""


def luhn_valid(number: str) -> bool:
    """Return whether the last digit is the Luhn check digit of the others. `number`: decimal digits only."""
    digits = [ord(character) - ord("0") for character in reversed(number)]
    return (sum(digits[0::2]) + sum(_LUHN_DOUBLED[digit] for digit in digits[1::2])) % 10 == 0


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
    return None if luhn_valid(number) else "fails the Luhn check"


_RULES: Final[tuple[tuple[str, Callable[[Any], str | None]], ...]] = (
    ("order_id", _identifier),
    ("customer", _identifier),
    ("merchant", _one_of(MERCHANTS, "merchant")),
    ("country", _one_of(COUNTRIES, "country")),
    ("currency", _one_of(CURRENCIES, "currency")),
    ("amount_minor", _amount),
    ("card_number", _card),
)
_TYPES: Final = {field.name: field.type for field in msgspec.structs.fields(OrderPlaced)}


def problems_of(order: OrderPlaced) -> tuple[str, ...]:
    """Return every reason why this order cannot be accepted; none for a good one."""
    return tuple(f"{name}: {wrong}" for name, rule in _RULES if (wrong := rule(getattr(order, name))))


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
