"""Records decode to what was encoded, also with fields of newer versions."""

from enum import EnumMeta
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts import events, journal, plan, progress
from contracts.journal import JournalRecord

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)
SIMPLE = {
    int: INT64,
    float: st.floats(allow_nan=False, allow_infinity=False),
    str: st.text(max_size=20),
    bool: st.booleans(),
    NoneType: st.none(),
}


def records(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Return a strategy for `kind` with every field drawn; the version stays what it is."""
    return st.builds(kind, **{one.name: values(one.type) for one in msgspec.structs.fields(kind) if one.name != "v"})


def values(of: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a field's type. Raises KeyError for a type that no record has had so far."""
    origin, arguments = get_origin(of), get_args(of)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, arguments))
    if origin is tuple:
        return st.lists(values(arguments[0]), max_size=4).map(tuple)
    if origin is dict:
        return st.dictionaries(values(arguments[0]), values(arguments[1]), max_size=4)
    if isinstance(of, EnumMeta):
        return st.sampled_from(of)
    if isinstance(of, type) and issubclass(of, msgspec.Struct):
        return records(of)
    return limited(of) if origin is Annotated else SIMPLE[of]


def limited(of: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for text or numbers within the limits of a field."""
    kind, limits = of.__origin__, of.__metadata__[0]
    if limits.pattern:
        return st.from_regex(limits.pattern)
    if kind is str:
        return st.text(min_size=limits.min_length or 0, max_size=20)
    if kind in (int, float):
        return st.integers(limits.ge, limits.le) if kind is int else st.floats(limits.ge, limits.le)
    return values(kind)  # lists are drawn short


def structs_in(module: Any) -> list[type[msgspec.Struct]]:
    """Return the public records that a module defines."""
    found = [value for name, value in vars(module).items() if isinstance(value, type) and not name.startswith("_")]
    return [kind for kind in found if issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__]


RECORDS = [kind for module in (events, journal, plan, progress) for kind in structs_in(module)]
TOPIC_RECORDS = [kind for kind in RECORDS if "v" in kind.__struct_fields__]


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_a_record_survives_encoding_and_ignores_fields_of_newer_versions(
    kind: type[msgspec.Struct], data: st.DataObject
) -> None:
    record = data.draw(records(kind))
    assert msgspec.json.decode(msgspec.json.encode(record), type=kind) == record
    newer = msgspec.to_builtins(record, str_keys=True) | {"colour": "blue", "nested": {"deep": [1]}}
    assert msgspec.json.decode(msgspec.json.encode(newer), type=kind) == record
    if kind in get_args(JournalRecord):  # the tag names the type
        assert msgspec.json.decode(msgspec.json.encode(record), type=JournalRecord) == record


@pytest.mark.parametrize("kind", TOPIC_RECORDS, ids=lambda kind: kind.__name__)
def test_every_record_carries_its_version(kind: type[msgspec.Struct]) -> None:
    versions = {"events": events.SCHEMA_VERSION, "journal": 2, "plan": plan.PLAN_VERSION, "progress": 2}
    defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
    assert defaults["v"] == versions[kind.__module__.rpartition(".")[2]]
    assert not kind.__struct_config__.omit_defaults, "v must be encoded"


def test_unknown_times_are_omitted() -> None:
    timeline = events.Timeline(intended_us=1, placed_us=2)
    assert msgspec.json.encode(timeline) == b'{"intended_us":1,"placed_us":2}'
