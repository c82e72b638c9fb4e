"""Turn untyped settings (environment, TOML files) into their record, naming every mistake at once.

In a file of a process the names are the keys, and variables of the environment override them.
"""

import logging
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from functools import cache
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from contracts.settings import Settings, contradictions, in_seconds, setting_error, setting_of, unknown_name, words_of

DECODE_ERRORS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not JSON or of another type, not UTF-8 inside a string, nested without end."""

_log = logging.getLogger(__name__)
T = TypeVar("T", bound=Settings)
Spelling = Callable[["Field[Any]"], str]  # field → its name where it is written
BY_NAME: Final[Spelling] = attrgetter("name")


class InvalidSettingsError(ValueError):
    """One or more settings are wrong. `problems` holds one sentence for each, so that all can be mended in one go."""

    def __init__(self, problems: list[str]) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


def parse(
    values: Mapping[str, Any],
    into: type[T],
    *,
    where: str = "",
    strict: bool = True,
    spelt: Spelling = BY_NAME,
) -> T:
    """Build an `into` from `values`.

    where: prefix for each problem, such as "load.".
    strict: False also accepts text for numbers, booleans and lists (a,b), as environment variables need.
    Raises InvalidSettingsError with one problem per unknown, missing, malformed or contradicting name.
    """
    good, problems = check_settings(values, into, strict=strict, spelt=spelt)
    if problems:
        raise InvalidSettingsError([where + problem for problem in problems])
    return into(**good)


def check_settings(
    values: Mapping[str, Any], into: type[Settings], *, strict: bool = True, spelt: Spelling = BY_NAME
) -> tuple[dict[str, Any], list[str]]:
    """Return name → value of what is right by itself, defaults included, and a sentence for each mistake."""
    values = present_names(values, into)
    keys = {spelt(one): one for one in fields(into)}
    types = get_type_hints(into)
    good: dict[str, Any] = {}
    why = {name: "was removed" if name in into.REMOVED else unknown_name(name, keys) for name in values.keys() - keys}
    problems = [f"{name}: {why[name]}" for name in values if name in why]
    for key, one in keys.items():
        if key in values:
            value, said = _converted(values[key], one, types[one.name], strict)
            problem = f"{key} = {values[key]!r}: {said}" if said else ""
        else:
            value = one.default if one.default_factory is MISSING else one.default_factory()
            problem = f"{key}: missing" if value is MISSING else ""
        if problem:
            problems.append(problem)
        else:
            good[one.name] = value
    names = {one.name: key for key, one in keys.items()}
    broken = contradictions(good, into.rules())
    return good, problems + [setting_error(names[name], good[name], problem) for name, problem in broken]


def present_names(
    values: Mapping[str, Any], into: type[Settings], spelling: Callable[[str], str] = str
) -> Mapping[str, Any]:
    """Return `values` by present names, without removed settings that have their former default.

    Logs one warning for each former name. A present name wins over the former one.
    """
    found = dict(values)
    for old, new in ((spelling(old), spelling(new)) for old, new in into.renamed().items()):
        if old in values:
            _warn_renamed(old, new)
            found.setdefault(new, found.pop(old))
    for name, default in into.REMOVED.items():
        if name in found and found[name] == default:
            del found[name]
    return found


@cache
def _warn_renamed(old: str, new: str) -> None:
    _log.warning("%s was renamed to %s; the former name works until the next version", old, new)


def _converted(value: Any, one: "Field[Any]", kind: Any, strict: bool) -> tuple[Any, str]:
    """Return the value as its type has it, and what is wrong with it; empty if nothing is."""
    if not strict and isinstance(value, str) and get_origin(kind) is tuple:
        value = [part.strip() for part in value.split(",")]
    try:
        found = msgspec.convert(in_seconds(one.name, value), kind, strict=strict)
    except msgspec.ValidationError as wrong:
        known = words_of(kind)
        said = unknown_name(str(value), known) if known else str(wrong)
        said += ", or a number" if known and float in get_args(kind) else ""
        return None, said + (", or a length of time such as 500ms, 25s or 2m" if one.name.endswith("_s") else "")
    return found, setting_of(one).problem(found)


def from_environment(
    environ: Mapping[str, str], into: type[T], table: Mapping[str, Any] | None = None, path: Path | None = None
) -> T:
    """Read the fields of `into` from variables named TAILPACK_FIELD, or else from the table that the file `path` holds.

    Other names are left alone. A table inside the table stands for text that holds JSON.
    Raises InvalidSettingsError naming every bad or missing value by the place where it is.
    """

    environ, table = present_names(environ, into, variable), present_names(table or {}, into)

    def place(one: "Field[Any]") -> str:
        return variable(one.name) if environ.get(variable(one.name)) or not path else f"{path}: {one.name}"

    found = ((place(one), environ.get(variable(one.name)) or table.get(one.name)) for one in fields(into))
    values = {k: msgspec.json.encode(v).decode() if isinstance(v, dict) else v for k, v in found if v is not None}
    return parse(values, into, strict=False, spelt=place)


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which a process reads these settings."""
    return {variable(one.name): as_text(getattr(settings, one.name)) for one in fields(settings)}


def as_text(value: object) -> str:
    """Return a value as the environment has it: several, separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"TAILPACK_{name.upper()}"


def text_in(path: Path) -> str:
    """Return what a file holds. Raises InvalidSettingsError."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as missing:
        raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
    except UnicodeDecodeError as wrong:
        raise InvalidSettingsError([f"{path}: is no text in UTF-8"]) from wrong


def table_in(path: Path) -> dict[str, Any]:
    """Return what a TOML file holds. Raises InvalidSettingsError."""
    text = text_in(path)
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise InvalidSettingsError([f"{path}: is no TOML ({wrong})"]) from wrong


def cache_folder() -> Path:
    """Return ${XDG_CACHE_HOME:-~/.cache}/tailpack, for files that can be made or fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailpack"
