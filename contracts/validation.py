"""Turn untyped settings (environment, TOML tables) into their record, naming every mistake at once."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

import msgspec

from contracts.settings import Settings, choices, contradictions, declaration, is_required, kinds, told, unknown

T = TypeVar("T", bound=Settings)


class InvalidSettingsError(ValueError):
    """One or more settings are wrong. `problems` holds one sentence for each, so that all can be mended in one go."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def parse(values: Mapping[str, Any], into: type[T], *, where: str = "", strict: bool = True) -> T:
    """Build an `into` from `values`.

    where: prefix for each problem, such as "load." or "TAILPACK_".
    strict: False also accepts text for numbers and booleans, as environment variables need.
    Raises InvalidSettingsError with one problem per unknown, missing, malformed or contradicting name.
    """
    good, problems = well_formed(values, into, strict=strict)
    keys = {one.name: declaration(one).key or one.name for one in fields(into)}
    problems += [told(keys[name], good[name], said) for name, said in contradictions(good, into.rules())]
    if problems:
        raise InvalidSettingsError([where + problem for problem in problems])
    return into(**good)


def well_formed(
    values: Mapping[str, Any], into: type[Settings], *, strict: bool = True
) -> tuple[dict[str, Any], list[str]]:
    """Return name → value of what is right by itself, defaults included, and a sentence for each name that is not."""
    keys = {declaration(one).key or one.name: one for one in fields(into)}
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
        try:
            value = msgspec.convert(values[key], types[one.name], strict=strict)
            said = declaration(one).problem(value)
        except msgspec.ValidationError as wrong:
            known = choices(types[one.name])
            said = unknown(str(values[key]), known) if known else str(wrong)
        if said:
            problems.append(f"{key} = {values[key]!r}: {said}")
        else:
            good[one.name] = value
    return good, problems


def from_environment(environ: Mapping[str, str], into: type[T], prefix: str = "TAILPACK_") -> T:
    """Read the fields of `into` from variables named prefix + FIELD; other variables are left alone.

    Raises InvalidSettingsError naming every bad or missing variable.
    """
    names = {prefix + one.name.upper(): one.name for one in fields(into)}
    values = {names[name]: text for name, text in environ.items() if name in names and text != ""}
    try:
        return parse(values, into, strict=False)
    except InvalidSettingsError as wrong:
        raise InvalidSettingsError([_as_variable(problem, prefix) for problem in wrong.problems]) from None


def _as_variable(problem: str, prefix: str) -> str:
    name, rest = problem.split(" ", 1) if " = " in problem else problem.split(":", 1)
    separator = " " if " = " in problem else ":"
    return f"{prefix}{name.upper()}{separator}{rest}"
