"""Input records of a stage, their effects, and the encoding of both. Independent of Faust and Kafka.

A record that cannot be decoded is refused with the reason. No field is guessed. Ids are deterministic: a repeat of the
same work has the same id, in any process and at any time.

The dead letter of a refused record always fits into its topic and shows no card number. Text from other programs is cut
and masked: value, key, order id, and the reasons, which may quote them.
"""

import re
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any, Final, TypeVar

import msgspec

from contracts.events import MAX_ID_LENGTH, SCHEMA_VERSION, DeadLetter
from contracts.validation import DECODE_ERRORS

R = TypeVar("R", bound=msgspec.Struct)

_NAMESPACE: Final = uuid.UUID("6f0c3a52-5a0b-5c8e-9d0a-7461696c7061")


class ServiceError(Exception):
    """The service cannot continue. Its exit code is 1. The message has the problem, its place and a remedy."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """An undecoded record of an input topic. `value` is None for a tombstone."""

    topic: str
    partition: int
    offset: int
    timestamp_us: int
    """The record's timestamp, µs since the epoch; Kafka stores milliseconds."""
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Effect:
    """One record to write. `id` is None if a second copy does no harm, as in a stage's memory."""

    id: str | None
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    """Partition of the record; None: the key chooses one."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """All reasons why a stage does not process a record. It is written as a dead letter."""

    reasons: tuple[str, ...]
    order_id: str | None = None


Decide = Callable[[Incoming], Iterable[Effect | Refusal]]  # record → its effects

encode: Final = msgspec.json.Encoder().encode


def decoder(kind: type[R]) -> Callable[[bytes | None], R | Refusal]:
    """Return the function that decodes a record's value as a `kind`.

    It refuses tombstones, values that are not JSON, unknown schema versions and wrong fields.
    """
    decode = msgspec.json.Decoder(kind).decode

    def decode_value(value: bytes | None) -> R | Refusal:
        if value is None:
            return Refusal(("the record has no value",))
        try:
            if (version := _version.decode(value).v) == SCHEMA_VERSION:
                return decode(value)
            reason = f"schema version {version} is unknown; this service understands {SCHEMA_VERSION}"
            return Refusal((reason,), order_id_in(value))
        except msgspec.ValidationError as error:
            return Refusal((f"not a {kind.__name__}: {error}",), order_id_in(value))
        except DECODE_ERRORS as error:
            return Refusal((f"not JSON: {error}",))

    return decode_value


def typed_decision(
    kind: type[R], decide: Callable[[R], Iterable[Effect]], admits: Callable[[Incoming, R], bool] = lambda *_: True
) -> Decide:
    """Return a decision that applies `decide` to admitted records of a `kind`, and refuses records of other kinds."""
    decode = decoder(kind)

    def decide_record(record: Incoming) -> Iterable[Effect | Refusal]:
        value = decode(record.value)
        if isinstance(value, Refusal):
            return (value,)
        return decide(value) if admits(record, value) else ()

    return decide_record


class _Versioned(msgspec.Struct):
    v: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0


class _OrderId(msgspec.Struct):
    order_id: str | None = None


_version = msgspec.json.Decoder(_Versioned)
_order_id_of = msgspec.json.Decoder(_OrderId)


def order_id_in(value: bytes | None) -> str | None:
    """Return the order id of a record whose other fields may be broken; None without one."""
    try:
        return _order_id_of.decode(value or b"").order_id
    except DECODE_ERRORS:
        return None


def effect_id(order_id: str, stage: str) -> str:
    """Return the id of a stage's effect for an order: uuid5 of both, equal in all processes and runs."""
    return str(uuid.uuid5(_NAMESPACE, f"{stage}/{order_id}"))


PAYLOAD_LIMIT: Final = 4096  # bytes of a refused value in its dead letter
KEY_LIMIT: Final = 256  # bytes of the refused record's key in its dead letter
REASONS_LIMIT: Final = 12  # number of reasons
REASON_LIMIT: Final = 256  # bytes of each reason
LETTER_LIMIT: Final = 16_384
"""Largest encoded dead letter, bytes. Escaped quotes can double the payload, and the other fields need space too."""
BARE_LETTER_LIMIT: Final = 2048  # bytes of the largest letter without payload and with one short reason
_BARE_REASON: Final = 128

_SEPARATORS: Final = 16  # largest number of characters between two digits of a card number
_LOOK_AHEAD: Final = 4096
"""Characters read beyond a cut, because the cut may be inside a card number. No card number is this long."""
_TOKENS: Final = re.compile(r"\\{1,4}(?:u[0-9a-fA-F]{4}|[bfnrt])|.", re.DOTALL)
"""One character, or the JSON escape of one."""
_CARD: Final = re.compile(rf"\d(?:[\W_]{{0,{_SEPARATORS}}}\d){{11,}}")
"""Twelve or more digits with only separators between them. A separator is neither a letter nor a digit."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_UNPRINTABLE: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32)), "\ufffd")
"""Characters that JSON encodes with six characters each, and their replacement."""


def dead_letter(stage: str, record: Any, refusal: Refusal, at_us: int, *, bare: bool = False) -> DeadLetter:
    """Return the dead letter of a `record` (an Incoming, or the consumer's Event) that `stage` refused.

    bare: without payload and with one short reason, for a broker that only accepts small records.
    """
    value = record.value or b""
    reasons = refusal.reasons[:REASONS_LIMIT]
    if bare:
        reasons = (f"{fitted(reasons[0] if reasons else '', _BARE_REASON)} (cut: the topic takes small records only)",)
    return DeadLetter(
        letter_id=f"{record.topic}/{record.partition}/{record.offset}",
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        reasons=tuple(fitted(reason, REASON_LIMIT) for reason in reasons),
        order_id=_order_id(refusal.order_id),
        payload="" if bare else fitted(value[: PAYLOAD_LIMIT + _LOOK_AHEAD].decode(errors="replace"), PAYLOAD_LIMIT),
        payload_bytes=len(value),
        payload_hash=blake2b(value, digest_size=16).hexdigest(),
        at_us=at_us,
    )


def letter_key(key: bytes | None) -> bytes | None:
    """Return the key of the letter: the key of the refused record, cut and masked."""
    if key is None:
        return None
    text = key[: KEY_LIMIT + _LOOK_AHEAD].decode(errors="replace")
    masked = mask_cards(text)
    return (key if masked == text else masked.encode())[:KEY_LIMIT]


def mask_cards(text: str) -> str:
    """Replace all but the last four digits of card numbers by *. The length of the text does not change.

    Twelve or more digits count as a card number. Separators between them and JSON escapes make no difference.
    """
    tokens = _TOKENS.findall(text) if "\\" in text else list(text)
    plain = "".join(map(_character, tokens))
    for run in _CARD.finditer(plain):
        digits = [place for place in range(*run.span()) if plain[place].isdecimal()]
        for place in digits[:-4]:
            tokens[place] = "*" * len(tokens[place])
    return "".join(tokens)


def _character(token: str) -> str:
    if len(token) == 1:
        return token
    return chr(int(token[-4:], 16)) if "u" in token else " "


def _order_id(order_id: str | None) -> str | None:
    if order_id is None or _UUID.fullmatch(order_id):  # a UUID may consist of digits only
        return order_id
    return fitted(order_id, 4 * MAX_ID_LENGTH)[:MAX_ID_LENGTH]


def fitted(text: str, limit: int) -> str:
    """Return the beginning of a text, at most `limit` bytes, with masked card numbers and printable in JSON."""
    shown = mask_cards(text[: limit + _LOOK_AHEAD]).translate(_UNPRINTABLE)
    return shown.encode(errors="replace")[:limit].decode(errors="ignore")
