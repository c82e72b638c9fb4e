"""Turn untyped settings (environment, TOML tables) into their record, naming every mistake at once.

And what decoding may raise where somebody else wrote the bytes.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec

from contracts.settings import Settings, choices, contradictions, declaration, is_required, kinds, seconds, told, unknown

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not JSON or of another type, not UTF-8 inside a string, nested without end."""

T = TypeVar("T", bound=Settings)
Spelling = Callable[["Field[Any]"], str]
"""Field → its name where it is written."""


class InvalidSettingsError(ValueError):
    """One or more settings are wrong. `problems` holds one sentence for each, so that all can be mended in one go."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def in_files(one: "Field[Any]") -> str:
    """Return the name of a field in TOML tables and properties files."""
    return declaration(one).key or one.name


def parse(
    values: Mapping[str, Any], into: type[T], *, where: str = "", strict: bool = True, spelt: Spelling = in_files
) -> T:
    """Build an `into` from `values`.

    where: prefix for each problem, such as "load.".
    strict: False also accepts text for numbers, booleans and lists (a,b), as environment variables need.
    Raises InvalidSettingsError with one problem per unknown, missing, malformed or contradicting name.
    """
    good, problems = well_formed(values, into, strict=strict, spelt=spelt)
    keys = {one.name: spelt(one) for one in fields(into)}
    problems += [told(keys[name], good[name], said) for name, said in contradictions(good, into.rules())]
    if problems:
        raise InvalidSettingsError([where + problem for problem in problems])
    return into(**good)


def well_formed(
    values: Mapping[str, Any], into: type[Settings], *, strict: bool = True, spelt: Spelling = in_files
) -> tuple[dict[str, Any], list[str]]:
    """Return name → value of what is right by itself, defaults included, and a sentence for each name that is not."""
    keys = {spelt(one): one for one in fields(into)}
    types = kinds(into)
    good: dict[str, Any] = {}
    problems = [f"{name}: {unknown(name, keys)}" for name in values if name not in keys]
    for key, one in keys.items():
        if key not in values:
            if is_required(one):
                problems.append(f"{key}: missing")
            else:
                good[one.name] = one.default if one.default_factory is MISSING else one.default_factory()
            continue
        said_value = seconds(values[key]) if declaration(one).unit == "s" else values[key]
        if types[one.name] is int and isinstance(said_value, float) and said_value.is_integer():
            said_value = int(said_value)
        if not strict and isinstance(said_value, str) and get_origin(types[one.name]) is tuple:
            said_value = [part.strip() for part in said_value.split(",")]
        try:
            value = msgspec.convert(said_value, types[one.name], strict=strict)
            said = declaration(one).problem(value)
        except msgspec.ValidationError as wrong:
            known = choices(types[one.name])
            said = unknown(str(values[key]), known) if known else str(wrong)
            said += ", or a number" if known and float in get_args(types[one.name]) else ""
        if said:
            problems.append(f"{key} = {values[key]!r}: {said}")
        else:
            good[one.name] = value
    return good, problems


def from_environment(environ: Mapping[str, str], into: type[T]) -> T:
    """Read the fields of `into` from variables named TAILPACK_FIELD; other variables are left alone.

    Raises InvalidSettingsError naming every bad or missing variable.
    """
    names = set(map(variable, fields(into)))
    values = {name: text for name, text in environ.items() if name in names and text != ""}
    return parse(values, into, strict=False, spelt=variable)


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which a process reads these settings."""
    return {variable(one): spelt_out(getattr(settings, one.name)) for one in fields(settings)}


def spelt_out(value: object) -> str:
    """Return a value as the environment has it: several, separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def variable(one: "Field[Any]") -> str:
    """Return the name of a field in the environment."""
    return f"TAILPACK_{one.name.upper()}"
