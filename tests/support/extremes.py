"""Control records in which one field at a time has an extreme value of its JSON type."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

NUMBERS = (-(10**400), -1, 10**12, 2**63 - 1, 10**16, 10**400, 1e308)
TEXTS = ("", "a\0b", "../../../x", "two\nlines", "x" * 20_000)
KEYS = ("-5", "99999999999999999999", "1000000000", "x")


def extremes(record: Any) -> Iterator[bytes]:
    """Yield the record as JSON, once for each field, nested ones too, and each extreme value.

    record: a struct, or its fields as builtin values, with an item in each list and map.
    """
    plain = msgspec.to_builtins(record, str_keys=True)
    for changed in _changed(plain):
        yield json.dumps(changed).encode()  # msgspec encodes no integer above 64 bits


def _changed(value: Any) -> Iterator[Any]:
    """Yield `value` with one part of it replaced."""
    match value:
        case bool() | None:
            yield from (None, 10**400)
        case int() | float():
            yield from NUMBERS
        case str():
            yield from TEXTS
        case list() | tuple():
            yield from ([], value * 2, value * 3000)
            for changed in _changed(value[0]):
                yield [changed, *value[1:]]
        case dict():
            if value and all(key.isdecimal() for key in value):
                first = next(iter(value.values()))
                yield from ({}, *({key: first} for key in KEYS), {str(key): first for key in range(3000)})
            for key, inner in value.items():
                for changed in _changed(inner):
                    yield value | {key: changed}
