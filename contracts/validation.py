"""Turn untyped settings (environment, TOML tables) into a typed record, naming every mistake at once."""

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

T = TypeVar("T", bound=msgspec.Struct)


class InvalidSettingsError(ValueError):
    """One or more settings are wrong. `problems` holds one sentence for each, so that all can be mended in one go."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def parse(values: Mapping[str, Any], into: type[T], *, where: str = "", strict: bool = True) -> T:
    """Build an `into` from `values`.

    where: prefix for each problem, such as "load." or "TAILPACK_".
    strict: False also accepts text for numbers and booleans, as environment variables need.
    Raises InvalidSettingsError with one problem per unknown, missing or malformed name.
    """
    fields = {field.encode_name: field for field in msgspec.structs.fields(into)}
    problems = [f"{where}{name}: unknown; known are {', '.join(fields)}" for name in values if name not in fields]
    good: dict[str, Any] = {}
    for name, field in fields.items():
        if name not in values:
            if field.required:
                problems.append(f"{where}{name}: missing")
            continue
        try:
            good[field.name] = msgspec.convert(values[name], field.type, strict=strict)
        except msgspec.ValidationError as wrong:
            problems.append(f"{where}{name} = {values[name]!r}: {wrong}")
    if problems:
        raise InvalidSettingsError(problems)
    try:
        return into(**good)
    except ValueError as wrong:  # a rule across fields, from __post_init__
        raise InvalidSettingsError([f"{where.rstrip('._')}: {wrong}"]) from wrong


def from_environment(environ: Mapping[str, str], into: type[T], prefix: str = "TAILPACK_") -> T:
    """Read the fields of `into` from variables named prefix + FIELD; other variables are left alone.

    Raises InvalidSettingsError naming every bad or missing variable.
    """
    names = {prefix + field.encode_name.upper(): field.encode_name for field in msgspec.structs.fields(into)}
    values = {names[name]: text for name, text in environ.items() if name in names and text != ""}
    try:
        return parse(values, into, strict=False)
    except InvalidSettingsError as wrong:
        raise InvalidSettingsError([_as_variable(problem, prefix) for problem in wrong.problems]) from None


def _as_variable(problem: str, prefix: str) -> str:
    name, rest = problem.split(" ", 1) if " = " in problem else problem.split(":", 1)
    separator = " " if " = " in problem else ":"
    return f"{prefix}{name.upper()}{separator}{rest}"
