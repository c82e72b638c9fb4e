"""Hypothesis strategies for msgspec records, made from the types of their fields."""

from enum import EnumMeta
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

import msgspec
from hypothesis import strategies as st

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)


def records(kind: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Return a strategy for `kind` with every field drawn; the version stays what it is."""
    fields = {field.name: values(field.type) for field in msgspec.structs.fields(kind) if field.name != "v"}
    return st.builds(kind, **fields)


def values(of: Any) -> st.SearchStrategy[Any]:
    """Return a strategy for values of a field's type. Raises TypeError for a type that no record has had so far."""
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
    simple = {
        int: INT64,
        float: st.floats(allow_nan=False, allow_infinity=False),
        str: st.text(max_size=20),
        bool: st.booleans(),
        NoneType: st.none(),
    }
    if of not in simple:
        raise TypeError(f"no strategy for a field of type {of}")
    return simple[of]
