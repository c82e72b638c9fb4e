"""A user's own settings of a policy: free-form keys, read into its dataclass. All mistakes are named at once."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, fields, replace
from typing import Any, Final, TypeAlias, TypeVar, get_origin, get_type_hints

from contracts.settings import Settings, declaration, sentences, unknown

OptionValue: TypeAlias = "bool | int | float | str | Sequence[OptionValue]"
"""What a TOML table can hold; sequences are for what a benchmark tells a policy, such as a schedule."""
Options = Mapping[str, OptionValue]
T = TypeVar("T")

_WORDS: Final[dict[object, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    tuple: "a list",
}


@dataclass(frozen=True, kw_only=True)
class NoOptions(Settings):
    """Of a policy that has no settings of its own."""


@dataclass(frozen=True, slots=True)
class PolicyOption:
    """One thing that a policy can be told."""

    name: str
    kind: str
    """In words: a number, true or false, …"""
    default: object
    """None: it must be told."""
    unit: str = ""
    range: str = ""
    """In words; empty: any."""
    sentence: str = ""


def listed(record: type, names: Iterable[str] | None = None) -> tuple[PolicyOption, ...]:
    """Return what the fields of a dataclass can be told; `names`: only these."""
    kinds, said = _kinds(record), sentences(record)
    return tuple(
        PolicyOption(
            one.name, _WORDS[kinds[one.name]], _default(one), declared.unit, declared.range(), said.get(one.name, "")
        )
        for one in fields(record)
        if names is None or one.name in names
        for declared in (declaration(one),)
    )


def problems_of(options: Options, known: Iterable[PolicyOption]) -> list[str]:
    """Say of each key what is wrong with it, then which keys are missing."""
    by_name = {one.name: one for one in known}
    wrong = []
    for name, value in options.items():
        if name not in by_name:
            wrong.append(f"{name}: {unknown(name, by_name)}")
        elif not _is(value, by_name[name].kind):
            wrong.append(f"{name} = {value!r}: must be {by_name[name].kind}")
    wrong += [
        f"{one.name}: must be told" for one in by_name.values() if one.default is None and one.name not in options
    ]
    return wrong


def made(record: type[T], options: Options) -> T:
    """Return the dataclass with those of the options that are its fields. Raises what the dataclass raises."""
    return record(**_own(record, options))


def changed(record: T, options: Options, names: Iterable[str]) -> T:
    """Return a copy of the dataclass with those of the options that `names` lists."""
    told = {name: value for name, value in options.items() if name in names}
    return replace(record, **_own(type(record), told))  # type: ignore[type-var]  # T is a dataclass


def _own(record: type, options: Options) -> dict[str, Any]:
    kinds = _kinds(record)
    return {name: _converted(value, kinds[name]) for name, value in options.items() if name in kinds}


def _kinds(record: type) -> dict[str, object]:
    hints = get_type_hints(record)
    return {one.name: get_origin(hints[one.name]) or hints[one.name] for one in fields(record)}


def _default(field: "Field[Any]") -> object:
    return field.default if field.default is not MISSING else None


def _is(value: OptionValue, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == _WORDS[bool]
    if isinstance(value, str):
        return kind == _WORDS[str]
    if isinstance(value, int):
        return kind in (_WORDS[int], _WORDS[float])
    return kind == _WORDS[float if isinstance(value, float) else tuple]


def _converted(value: OptionValue, kind: object) -> object:
    if kind is float and isinstance(value, int):
        return float(value)
    return _as_tuple(value) if kind is tuple else value


def _as_tuple(value: object) -> object:
    return tuple(map(_as_tuple, value)) if isinstance(value, list | tuple) else value
