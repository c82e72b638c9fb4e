"""A setting is declared once, as a field of a frozen dataclass with its unit, its range and a sentence below it.

Records inherit the settings that they share, so scenario files, environments, `--set`, the simulator and live processes
use the same name, default and check. This module has no side effects, so the decision core may import it.
"""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, dataclass, field, fields
from enum import Enum, EnumMeta
from math import inf, isfinite
from typing import Any, ClassVar, Final, Literal, TypeVar, get_args, get_origin

T = TypeVar("T")
Values = Mapping[str, Any]  # name → value of all settings that are known and well-formed
Rule = Callable[[Values], str | None]
"""Checks several settings together. Returns the problem or None. Raises KeyError if a value is missing."""
Rules = tuple[tuple[str, Rule], ...]

DAY_S: Final = 86_400.0
UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}  # unit of a duration → seconds
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(UNITS)})")


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting, in addition to its name, type, default and sentence."""

    unit: str = ""
    """s, events/s, share, replicas …; empty: none."""
    least: float = -inf
    above: float = -inf
    most: float = inf
    below: float = inf
    known: tuple[str, ...] = ()
    """Allowed words; empty: any."""

    def problem(self, value: object) -> str:
        """Return what is wrong with a value of the right type ("must be …"), or an empty text."""
        if isinstance(value, tuple):
            return next((problem for item in value if (problem := self.problem(item))), "")
        if self.known and value not in self.known:
            return unknown_name(str(value), filter(None, self.known))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ""
        inside = -inf < value < inf and self.least <= value <= self.most and self.above < value < self.below
        return "" if inside else f"must be {self.range() or 'finite'}"

    def range(self) -> str:
        """Return the range in words, such as "more than 0 s, at most 60 s". It is empty if there are no limits."""
        unit = f" {self.unit}" if self.unit in ("s", "events/s") else ""
        words = ("at least", "more than", "at most", "less than")
        limits = zip(words, (self.least, self.above, self.most, self.below), strict=True)
        return ", ".join(f"{word} {limit:.10g}{unit}" for word, limit in limits if isfinite(limit))


def setting(default: T, unit: str = "", **declaration: Any) -> T:
    """Declare a field with a default. declaration: fields of Setting. A unit of `s` implies at most a day."""
    longest = {"most": DAY_S} if unit == "s" else {}
    return field(default=default, metadata={"setting": Setting(unit, **longest | declaration)})


def required(unit: str = "", **declaration: Any) -> Any:
    """Declare a field without a default that has a unit or a range."""
    return setting(MISSING, unit, **declaration)


def must(name: str, holds: Callable[[Values], object], otherwise: str) -> tuple[str, Rule]:
    """Return a rule: if `holds` is false, `otherwise` is the error of setting `name`. In it, {x} becomes x's value."""
    return name, lambda values: None if holds(values) else otherwise.format_map(values)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all records of settings. Raises ValueError that names every problem, not only the first."""

    TABLES: ClassVar[Mapping[str, Mapping[str, str]]] = {}
    """Table of a file whose keys are settings of this class → short name in it → name of the setting."""
    RULES: ClassVar[Rules] = ()
    """Conditions on several settings, as (name in the error, rule). Rules of base classes apply too."""

    def __post_init__(self) -> None:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        problems = [(field.name, setting_of(field).problem(values[field.name])) for field in fields(self)]
        problems += contradictions(values, self.rules())
        if sentences := [setting_error(name, values[name], problem) for name, problem in problems if problem]:
            raise ValueError("; ".join(sentences))

    @classmethod
    def rules(cls) -> Rules:
        """Return the rules of the class and of its base classes."""
        return tuple(rule for base in reversed(cls.__mro__) for rule in vars(base).get("RULES", ()))


@dataclass(frozen=True, kw_only=True)
class Target(Settings):
    """The SLO: `percentile` of all events finish within `latency_target_s` (W) of their scheduled time."""

    latency_target_s: float = setting(0.5, "s", above=0)
    """Latency target (W). An event is in time if it is done within W of its scheduled time. The papers use 0.5."""
    percentile: float = setting(0.999, "share", above=0, most=1)
    """Share (q) of events that must be in time."""


@dataclass(frozen=True, kw_only=True)
class WebPages(Settings):
    """Address of a process's pages, such as health and metrics."""

    http_host: str = setting("127.0.0.1")
    """Address of the pages; 0.0.0.0 in a container."""
    http_port: int = setting(0, least=0, most=65535)
    """Port of the pages; 0: none."""


def setting_of(field: "Field[Any]") -> Setting:
    """Return the declaration of a field."""
    return field.metadata.get("setting", Setting())  # type: ignore[no-any-return]


def contradictions(values: Values, rules: Sequence[tuple[str, Rule]]) -> list[tuple[str, str]]:
    """Return (name, problem) for each broken rule. Rules with a missing value are skipped."""
    found = []
    for name, rule in rules:
        with suppress(KeyError):
            if problem := rule(values):
                found.append((name, problem))
    return found


def setting_error(name: str, value: object, problem: str) -> str:
    """Return the sentence for one wrong setting."""
    return f"{name} = {(str(value) if isinstance(value, Enum) else value)!r}: {problem}"


def words_of(kind: object) -> tuple[str, ...]:
    """Return the words that an enum, a Literal, or a union with one of them allows. Other types: an empty tuple."""
    for part in (kind, *get_args(kind)):
        if isinstance(part, EnumMeta):
            return tuple(map(str, list(part)))
        if get_origin(part) is Literal:
            return get_args(part)
    return ()


def duration_s(text: str) -> float:
    """Return the seconds of a duration with a unit, such as `500ms`, `25s`, `2m` or `1h`. Raises ValueError."""
    if (match := _DURATION.fullmatch(text.strip())) is None:
        raise ValueError(f"{text!r} is not a duration; write for example 500ms, 25s, 2m or 1h")
    return round(float(match[1]) * UNITS[match[2]], 9)


def in_seconds(name: str, value: Any) -> Any:
    """Return the value of a setting. If the name ends in `_s`, a text such as `2m` is converted to seconds."""
    if isinstance(value, list | tuple):
        return [in_seconds(name, item) for item in value]
    if name.endswith("_s") and isinstance(value, str):
        with suppress(ValueError):
            seconds = duration_s(value)
            return int(seconds) if seconds.is_integer() else seconds  # some settings are whole seconds
    return value


def shared_fields(source: object, into: type) -> dict[str, Any]:
    """Return name → value of the fields of `source` that `into` also has."""
    return {field.name: getattr(source, field.name) for field in fields(into) if hasattr(source, field.name)}


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Return the error text for an unknown name. It has the nearest known name, or else up to ten known names."""
    names = list(known)
    whole = {full.rpartition(".")[2]: full for full in names} | {full: full for full in names}
    near = [whole[match] for match in difflib.get_close_matches(name, whole, n=1)]
    listed = ", ".join([*names[:10], "…"] if len(names) > 10 else names)
    return f"unknown; did you mean {near[0]}?" if near else f"unknown; known are {listed or 'none'}"
