"""Parses untyped settings from the environment and TOML files into records, and reports every mistake at once."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from contracts.settings import Settings, contradictions, in_seconds, setting_error, setting_of, unknown_name, words_of

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of decoding: the text is not JSON, has another type, is not UTF-8, or is nested too deeply."""

T = TypeVar("T", bound=Settings)
Spelling = Callable[["Field[Any]"], str]  # field → its name in the source


class InvalidSettingsError(ValueError):
    """One or more settings are wrong. `problems` has one sentence for each, so that all can be fixed at once."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def parse(
    values: Mapping[str, Any],
    into: type[T],
    *,
    where: str = "",
    strict: bool = True,
    spelling: Spelling = attrgetter("name"),
) -> T:
    """Build a record of the class `into` from `values`.

    where: prefix of each problem, such as "load.".
    strict: False also accepts text for numbers, booleans and lists (a,b), as environment variables need.
    Raises InvalidSettingsError with one problem per unknown, missing, malformed or contradicting name.
    """
    good, problems = check_settings(values, into, strict=strict, spelling=spelling)
    if problems:
        raise InvalidSettingsError([where + problem for problem in problems])
    return into(**good)


def check_settings(
    values: Mapping[str, Any], into: type[Settings], *, strict: bool = True, spelling: Spelling = attrgetter("name")
) -> tuple[dict[str, Any], list[str]]:
    """Return name → value of the well-formed settings (with defaults), and a sentence for each problem."""
    keys = {spelling(field): field for field in fields(into)}
    types = get_type_hints(into)
    good: dict[str, Any] = {}
    problems = [f"{name}: {unknown_name(name, keys)}" for name in values if name not in keys]
    for key, field in keys.items():
        if key in values:
            value, wrong = _convert(values[key], field, types[field.name], strict)
            problem = f"{key} = {values[key]!r}: {wrong}" if wrong else ""
        else:
            value = field.default if field.default_factory is MISSING else field.default_factory()
            problem = f"{key}: missing" if value is MISSING else ""
        if problem:
            problems.append(problem)
        else:
            good[field.name] = value
    names = {field.name: key for key, field in keys.items()}
    broken = contradictions(good, into.rules())
    return good, problems + [setting_error(names[name], good[name], problem) for name, problem in broken]


def _convert(value: Any, field: "Field[Any]", kind: Any, strict: bool) -> tuple[Any, str]:
    """Return the value in its type, and its problem or an empty text."""
    if not strict and isinstance(value, str) and get_origin(kind) is tuple:
        value = [part.strip() for part in value.split(",")]
    try:
        found = msgspec.convert(in_seconds(field.name, value), kind, strict=strict)
    except (msgspec.ValidationError, UnicodeEncodeError) as wrong:
        words, why = words_of(kind), "is not UTF-8 text" if isinstance(wrong, UnicodeError) else str(wrong)
        problem = unknown_name(str(value), words) if words else why
        problem += ", or a number" if words and float in get_args(kind) else ""
        return None, problem + (", or a duration such as 500ms, 25s or 2m" if field.name.endswith("_s") else "")
    return found, setting_of(field).problem(found)


def from_environment(
    environ: Mapping[str, str], into: type[T], table: Mapping[str, Any] | None = None, path: Path | None = None
) -> T:
    """Read the fields of `into` from variables TAILPACK_FIELD. Fields without one come from `table`, read from `path`.

    Other names are ignored. A nested table is converted to JSON text.
    Raises InvalidSettingsError that names every bad or missing value by its variable or key.
    """
    table = table or {}

    def place(field: "Field[Any]") -> str:
        return variable(field.name) if environ.get(variable(field.name)) or not path else f"{path}: {field.name}"

    found = ((place(field), environ.get(variable(field.name)) or table.get(field.name)) for field in fields(into))
    values = {k: msgspec.json.encode(v).decode() if isinstance(v, dict) else v for k, v in found if v is not None}
    return parse(values, into, strict=False, spelling=place)


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which a process reads these settings."""
    return {variable(field.name): as_text(getattr(settings, field.name)) for field in fields(settings)}


def as_text(value: object) -> str:
    """Return a value as text for the environment. Items are separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"TAILPACK_{name.upper()}"


def text_in(path: Path) -> str:
    """Return the text of a file, without a byte order mark. Raises InvalidSettingsError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as wrong:  # a path may hold a NUL
        why = "it is not UTF-8 text" if isinstance(wrong, UnicodeError) else getattr(wrong, "strerror", wrong)
        raise InvalidSettingsError([f"{path}: cannot be read ({why})"]) from wrong


def table_in(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file. Raises InvalidSettingsError."""
    text = text_in(path)
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as wrong:  # ValueError: also a number of 5,000 digits
        raise InvalidSettingsError([f"{path}: is not valid TOML ({wrong})"]) from wrong


def cache_folder() -> Path:
    """Return ${XDG_CACHE_HOME:-~/.cache}/tailpack, the folder for files that can be computed or fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailpack"
