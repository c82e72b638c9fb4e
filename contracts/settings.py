"""A setting is declared once: a field of a frozen dataclass, with its unit, its range, and a sentence below it.

Whoever needs a setting inherits the record that declares it, so scenario files, environments, `--set`, the simulator
and live processes share name, default and check. Pure: the decision core may import this module.
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
Values = Mapping[str, Any]  # name → value of everything that is known and well-formed
Rule = Callable[[Values], str | None]
"""Says what cannot be true together; None where all is well. KeyError: a value that it needs is not there."""
Rules = tuple[tuple[str, Rule], ...]

DAY_S: Final = 86_400.0
UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}  # unit of a length of time → seconds
_DURATION: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(UNITS)})")


@dataclass(frozen=True, slots=True)
class Setting:
    """The declaration of a setting, besides its name, type, default and sentence."""

    unit: str = ""
    """s, events/s, share, replicas …; empty where it has none."""
    least: float = -inf
    above: float = -inf
    most: float = inf
    below: float = inf
    known: tuple[str, ...] = ()
    """Allowed words; none: any."""
    formerly: str = ""
    """Former name, which is accepted for one version with a warning; empty: none."""

    def problem(self, value: object) -> str:
        """Return what is wrong with a value of the right type: "must be …"; empty if nothing is."""
        if isinstance(value, tuple):
            return next((problem for one in value if (problem := self.problem(one))), "")
        if self.known and value not in self.known:
            return unknown_name(str(value), filter(None, self.known))
        if isinstance(value, bool) or not isinstance(value, int | float):
            return ""
        inside = isfinite(value) and self.least <= value <= self.most and self.above < value < self.below
        return "" if inside else f"must be {self.range() or 'finite'}"

    def range(self) -> str:
        """Return the range in words: "more than 0 s, at most 60 s"; empty where there is none."""
        unit = f" {self.unit}" if self.unit in ("s", "events/s") else ""
        words = ("at least", "more than", "at most", "less than")
        limits = zip(words, (self.least, self.above, self.most, self.below), strict=True)
        return ", ".join(f"{word} {limit:.10g}{unit}" for word, limit in limits if isfinite(limit))


def setting(default: T, unit: str = "", **said: Any) -> T:
    """Declare a field with a default. said: as the fields of Setting.

    Lengths of time are a day at most where nothing else is said; numbers are finite.
    """
    longest = {"most": DAY_S} if unit == "s" else {}
    return field(default=default, metadata={"setting": Setting(unit, **longest | said)})


def required(unit: str = "", **said: Any) -> Any:
    """Declare a field without a default that has a unit or a range."""
    return setting(MISSING, unit, **said)


def must(name: str, holds: Callable[[Values], object], otherwise: str) -> tuple[str, Rule]:
    """Return the rule that `holds`; `otherwise` is said of the setting `name`, with values for names in braces."""
    return name, lambda values: None if holds(values) else otherwise.format_map(values)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Base of all records of settings. Raises ValueError naming everything that is wrong, not only the first."""

    REMOVED: ClassVar[Values] = {}
    """Removed setting → its former default, the only value that is still accepted (and ignored), for one version."""
    RULES: ClassVar[Rules] = ()
    """(the setting that is blamed, rule) for what concerns several settings; those of the bases hold, too."""

    def __post_init__(self) -> None:
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        wrong = [(one.name, setting_of(one).problem(values[one.name])) for one in fields(self)]
        wrong += contradictions(values, self.rules())
        if sentences := [setting_error(name, values[name], problem) for name, problem in wrong if problem]:
            raise ValueError("; ".join(sentences))

    @classmethod
    def renamed(cls) -> dict[str, str]:
        """Return former name → present name."""
        return {setting_of(one).formerly: one.name for one in fields(cls) if setting_of(one).formerly}

    @classmethod
    def rules(cls) -> Rules:
        """Return the rules of the class and of all that it inherits from."""
        return tuple(one for base in reversed(cls.__mro__) for one in vars(base).get("RULES", ()))


@dataclass(frozen=True, kw_only=True)
class Target(Settings):
    """The promise that everything is measured by: `percentile` of events within `latency_target_s` (W)."""

    latency_target_s: float = setting(0.5, "s", above=0)
    """Latency target (W): an event is in time if it is done this long after its scheduled time. The papers use 0.5."""
    percentile: float = setting(0.999, "share", above=0, most=1)
    """Share (q) of events that must be in time."""


def setting_of(one: "Field[Any]") -> Setting:
    """Return what is declared of a field."""
    return one.metadata.get("setting", Setting())  # type: ignore[no-any-return]


def contradictions(values: Values, rules: Sequence[tuple[str, Rule]]) -> list[tuple[str, str]]:
    """Return (name, sentence) for each rule that is broken. A rule whose values are not all there is left out."""
    found = []
    for name, rule in rules:
        with suppress(KeyError):
            if said := rule(values):
                found.append((name, said))
    return found


def setting_error(name: str, value: object, problem: str) -> str:
    """Return the sentence for one setting that is wrong."""
    return f"{name} = {(str(value) if isinstance(value, Enum) else value)!r}: {problem}"


def words_of(kind: object) -> tuple[str, ...]:
    """Return the words that a type allows: of an enum, a Literal, or a union with one of them; else none."""
    for one in (kind, *get_args(kind)):
        if isinstance(one, EnumMeta):
            return tuple(map(str, list(one)))
        if get_origin(one) is Literal:
            return get_args(one)
    return ()


def duration_s(text: str) -> float:
    """Return the seconds in a length of time with its unit: `500ms`, `25s`, `2m`, `1h`. Raises ValueError."""
    if (match := _DURATION.fullmatch(text.strip())) is None:
        raise ValueError(f"{text!r} is no length of time; write for example 500ms, 25s, 2m or 1h")
    return round(float(match[1]) * UNITS[match[2]], 9)


def in_seconds(name: str, value: Any) -> Any:
    """Return the value of a setting, with each length of time in seconds if the name ends in `_s`."""
    if isinstance(value, list | tuple):
        return [in_seconds(name, one) for one in value]
    if name.endswith("_s") and isinstance(value, str):
        with suppress(ValueError):
            seconds = duration_s(value)
            return int(seconds) if seconds.is_integer() else seconds  # some settings are whole seconds
    return value


def shared_fields(source: object, into: type) -> dict[str, Any]:
    """Return name → value of the fields of `source` that `into` has, too."""
    names = [one.name for one in fields(into)]
    return {name: getattr(source, name) for name in names if hasattr(source, name)}


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Return that a name is unknown, and the nearest one; without a near one, those that exist, ten at most."""
    names = list(known)
    whole = {one.rpartition(".")[2]: one for one in names} | {one: one for one in names}
    near = [whole[one] for one in difflib.get_close_matches(name, whole, n=1)]
    there = ", ".join([*names[:10], "…"] if len(names) > 10 else names)
    return f"unknown; did you mean {near[0]}?" if near else f"unknown; known are {there or 'none'}"
