"""Bytes to records and back. What cannot be decoded is refused with the reason, never guessed."""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from contracts.events import UnknownVersionError, check_version
from services.common.dead_letters import order_id_in
from services.common.errors import RefusedError
from services.common.history import IdOf
from services.common.records import Incoming

R = TypeVar("R", bound=msgspec.Struct)

encode: Final = msgspec.json.Encoder().encode


def decoder(kind: type[R]) -> Callable[[Incoming], R]:
    """Return the function that turns a record's value into a `kind`.

    It raises RefusedError for a tombstone, for what is not JSON, for an unknown schema version, for wrong fields.
    """
    decode = msgspec.json.Decoder(kind).decode

    def decoded(record: Incoming) -> R:
        if record.value is None:
            raise RefusedError(("the record has no value",))
        try:
            check_version(record.value)
            return decode(record.value)
        except UnknownVersionError as unknown:
            raise RefusedError((str(unknown),), order_id_in(record.value)) from unknown
        except msgspec.ValidationError as wrong:
            raise RefusedError((f"not a {kind.__name__}: {wrong}",), order_id_in(record.value)) from wrong
        except (msgspec.DecodeError, UnicodeDecodeError) as wrong:
            raise RefusedError((f"not JSON: {wrong}",)) from wrong

    return decoded


def identity_in(field: str, make: Callable[[str], str] = str) -> IdOf:
    """Return the function that reads an effect's id from its record: `make` of its text field `field`."""
    decode = msgspec.json.Decoder(msgspec.defstruct("Identity", [(field, str)])).decode

    def identity(value: bytes) -> str:
        return make(getattr(decode(value), field))

    return identity
