"""A record as a stage sees it, what it may want written because of it, and the bytes of both. No Faust, no Kafka.

What cannot be decoded is refused with the reason, never guessed. Ids are deterministic: a repeat of the same work
carries the same id, whichever process does it and when.

What is kept of a refused record, its dead letter, always fits and shows no card number: everything that another program
wrote is cut (value, key, order id, and the reasons, which may repeat parts of it).
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
    """The service cannot go on. The message says what, where and what to do; the exit code is 1."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One record of an input topic, undecoded. `value` is None for a tombstone."""

    topic: str
    partition: int
    offset: int
    timestamp_us: int
    """The record's own timestamp (Kafka keeps milliseconds)."""
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Effect:
    """One record to write. `id` None: writing it twice does no harm (what a stage remembers)."""

    id: str | None
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    """None: by the key."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Every reason why a stage will not process a record. It is written as a dead letter."""

    reasons: tuple[str, ...]
    order_id: str | None = None


Decide = Callable[[Incoming], Iterable[Effect | Refusal]]  # record → what it causes

encode: Final = msgspec.json.Encoder().encode


def decoder(kind: type[R]) -> Callable[[bytes | None], R | Refusal]:
    """Return the function that turns a record's value into a `kind`.

    It refuses a tombstone, what is not JSON, an unknown schema version and wrong fields.
    """
    decode = msgspec.json.Decoder(kind).decode

    def decoded(value: bytes | None) -> R | Refusal:
        if value is None:
            return Refusal(("the record has no value",))
        try:
            if (version := _version.decode(value).v) == SCHEMA_VERSION:
                return decode(value)
            reason = f"schema version {version} is unknown; this service understands {SCHEMA_VERSION}"
            return Refusal((reason,), order_id_in(value))
        except msgspec.ValidationError as wrong:
            return Refusal((f"not a {kind.__name__}: {wrong}",), order_id_in(value))
        except DECODE_ERRORS as wrong:
            return Refusal((f"not JSON: {wrong}",))

    return decoded


def decoded(kind: type[R], decide: Callable[[R], Iterable[Effect]]) -> Decide:
    """Return `decide` for records whose value is a `kind`; any other record is refused."""
    decode = decoder(kind)

    def decided(record: Incoming) -> Iterable[Effect | Refusal]:
        value = decode(record.value)
        return (value,) if isinstance(value, Refusal) else decide(value)

    return decided


class _Versioned(msgspec.Struct):
    v: Annotated[int, msgspec.Meta(ge=0, le=10**6)] = 0


class _OrderId(msgspec.Struct):
    order_id: str | None = None


_version = msgspec.json.Decoder(_Versioned)
_order_id_of = msgspec.json.Decoder(_OrderId)


def order_id_in(value: bytes | None) -> str | None:
    """Return the order id of a record that may be broken otherwise."""
    try:
        return _order_id_of.decode(value or b"").order_id
    except DECODE_ERRORS:
        return None


def effect_id(order_id: str, stage: str) -> str:
    """Return the id of what `stage` does for an order: uuid5 of both, the same in every process and every run."""
    return str(uuid.uuid5(_NAMESPACE, f"{stage}/{order_id}"))


PAYLOAD_LIMIT: Final = 4096  # bytes of a refused value that its dead letter keeps
KEY_LIMIT: Final = 256  # bytes of its key
REASONS_LIMIT: Final = 12
REASON_LIMIT: Final = 256  # most reasons, and bytes of each
LETTER_LIMIT: Final = 16_384
"""Bytes that no letter exceeds, encoded: twice the payload, since quotes are escaped, and everything else."""
BARE_LETTER_LIMIT: Final = 2048  # bytes that no letter without payload and with one short reason exceeds
_BARE_REASON: Final = 128

_SEPARATORS: Final = 16  # most characters between two digits of one card number
_LOOK_AHEAD: Final = 4096
"""Characters looked at beyond a cut, which may lie inside a card number: no such number is as long."""
_TOKENS: Final = re.compile(r"\\{1,4}(?:u[0-9a-fA-F]{4}|[bfnrt])|.", re.DOTALL)
"""One character, or a JSON escape that stands for one."""
_CARD: Final = re.compile(rf"\d(?:[\W_]{{0,{_SEPARATORS}}}\d){{11,}}")
"""Twelve or more digits with nothing but separators between them: whatever is neither letter nor digit."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_UNPRINTABLE: Final = dict.fromkeys((*range(9), 11, 12, *range(14, 32)), "\ufffd")
"""JSON would write six characters for each of these."""


def dead_letter(stage: str, record: Any, refusal: Refusal, at_us: int, *, bare: bool = False) -> DeadLetter:
    """Return the letter that tells why `stage` refused `record`: an Incoming, or the consumer's Event.

    bare: without payload and with one short reason, for a broker that takes small records only.
    """
    value = record.value or b""
    reasons = refusal.reasons[:REASONS_LIMIT]
    if bare:
        reasons = (f"{_fitted(reasons[0] if reasons else '', _BARE_REASON)} (cut: the topic takes small records only)",)
    return DeadLetter(
        letter_id=f"{record.topic}/{record.partition}/{record.offset}",
        stage=stage,
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        reasons=tuple(_fitted(reason, REASON_LIMIT) for reason in reasons),
        order_id=_order_id(refusal.order_id),
        payload="" if bare else _fitted(value[: PAYLOAD_LIMIT + _LOOK_AHEAD].decode(errors="replace"), PAYLOAD_LIMIT),
        payload_bytes=len(value),
        payload_hash=blake2b(value, digest_size=16).hexdigest(),
        at_us=at_us,
    )


def letter_key(key: bytes | None) -> bytes | None:
    """Return the key of the letter: the refused record's, cut and masked."""
    if key is None:
        return None
    text = key[: KEY_LIMIT + _LOOK_AHEAD].decode(errors="replace")
    masked = mask_cards(text)
    return (key if masked == text else masked.encode())[:KEY_LIMIT]


def mask_cards(text: str) -> str:
    """Replace by * the digits of card numbers, the last four apart. The text keeps its length.

    A card number is taken to be twelve or more digits, whatever separators stand between them, also as JSON escapes.
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
    if order_id is None or _UUID.fullmatch(order_id):  # of which some are digits alone
        return order_id
    return _fitted(order_id, 4 * MAX_ID_LENGTH)[:MAX_ID_LENGTH]


def _fitted(text: str, limit: int) -> str:
    shown = mask_cards(text[: limit + _LOOK_AHEAD]).translate(_UNPRINTABLE)
    return shown.encode(errors="replace")[:limit].decode(errors="ignore")
