"""A record as a stage sees it, what it may want written because of it, and the bytes of both. No Faust, no Kafka.

What cannot be decoded is refused with the reason, never guessed. Ids are deterministic: a repeat of the same work
carries the same id, whoever does it and when.
"""

import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec

from contracts.events import SCHEMA_VERSION
from contracts.validation import UNDECODABLE

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


Decide = Callable[[Incoming], Iterable[Effect | Refusal]]
"""Record → what it causes."""

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
        except UNDECODABLE as wrong:
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
_order_id = msgspec.json.Decoder(_OrderId)


def order_id_in(value: bytes | None) -> str | None:
    """Return the order id of a record that may be broken otherwise."""
    try:
        return _order_id.decode(value or b"").order_id
    except UNDECODABLE:
        return None


def effect_id(order_id: str, stage: str) -> str:
    """Return the id of what `stage` does for an order: uuid5 of both, the same in every process and every run."""
    return str(uuid.uuid5(_NAMESPACE, f"{stage}/{order_id}"))
