"""Turn untyped settings (environment, TOML files) into their record, naming every mistake at once.

In a file of a process the names are the keys, and variables of the environment override them.
"""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any, Final, TypeVar, get_args, get_origin

import msgspec

from contracts.settings import (
    Settings,
    choices,
    contradictions,
    declaration,
    kinds,
    told,
    unknown,
    with_seconds,
)

UNDECODABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Not JSON or of another type, not UTF-8 inside a string, nested without end."""

SECRETS: Final = ("password", "secret", "token")

T = TypeVar("T", bound=Settings)
Spelling = Callable[["Field[Any]"], str]  # field → its name where it is written


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
            if one.default is one.default_factory is MISSING:
                problems.append(f"{key}: missing")
            else:
                good[one.name] = one.default if one.default_factory is MISSING else one.default_factory()
            continue
        said_value = values[key]
        if not strict and isinstance(said_value, str) and get_origin(types[one.name]) is tuple:
            said_value = [part.strip() for part in said_value.split(",")]
        try:
            value = msgspec.convert(with_seconds(one.name, said_value), types[one.name], strict=strict)
            said = declaration(one).problem(value)
        except msgspec.ValidationError as wrong:
            known = choices(types[one.name])
            said = unknown(str(values[key]), known) if known else str(wrong)
            said += ", or a number" if known and float in get_args(types[one.name]) else ""
            said += ", or a length of time such as 500ms, 25s or 2m" if one.name.endswith("_s") else ""
        if said:
            problems.append(f"{key} = {values[key]!r}: {said}")
        else:
            good[one.name] = value
    return good, problems


def from_environment(environ: Mapping[str, str], into: type[T]) -> T:
    """Read the fields of `into` from variables named TAILPACK_FIELD; other variables are left alone.

    Raises InvalidSettingsError naming every bad or missing variable.
    """
    return ConfigFile(None, environ).read(into)


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the variables from which a process reads these settings."""
    return {variable(one): spelt_out(getattr(settings, one.name)) for one in fields(settings)}


def spelt_out(value: object) -> str:
    """Return a value as the environment has it: several, separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def variable(one: "Field[Any]") -> str:
    """Return the name of a field in the environment."""
    return f"TAILPACK_{one.name.upper()}"


class ConfigFile:
    """Settings of a process in a TOML file; variables override it. Without a path there are variables alone."""

    def __init__(self, path: Path | None, environ: Mapping[str, str]) -> None:
        """Read the file. Raises InvalidSettingsError: it cannot be read, or is no TOML."""
        self.path, self._environ = path, environ
        try:
            self._values = tomllib.loads(path.read_text(encoding="utf-8")) if path else {}
        except OSError as missing:
            raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
        except ValueError as wrong:
            raise InvalidSettingsError([f"{path}: no TOML ({wrong})"]) from wrong

    def strangers(self, *kinds: type[Settings]) -> list[str]:
        """Return a sentence for each key that none of `kinds` has."""
        known = _names(*kinds)
        return [f"{self.path}: {key}: {_why_not(key, known)}" for key in self._values if key not in known]

    def swallowed(self, table: str, *kinds: type[Settings]) -> str:
        """Return that settings of `kinds` are below [table], where TOML takes them for the table's; empty: none are."""
        inside = self._values.get(table)
        below = [key for key in _names(*kinds) if key in inside] if isinstance(inside, dict) else []
        return f"; {', '.join(below)}: below [{table}], so inside it; settings stand above that line" if below else ""

    def read(self, into: type[T]) -> T:
        """Return an `into`. A table stands for text that holds JSON.

        Raises InvalidSettingsError naming every value that is wrong, each by the place where it is.
        """

        def spelt(one: "Field[Any]") -> str:
            is_in_file = self.path and not self._environ.get(variable(one))
            return f"{self.path}: {in_files(one)}" if is_in_file else variable(one)

        texts = {k: msgspec.json.encode(v).decode() if isinstance(v, dict) else v for k, v in self._values.items()}
        values = {f"{self.path}: {key}": value for key, value in texts.items()}
        values |= {name: text for name, text in self._environ.items() if text != ""}
        names = map(spelt, fields(into))
        return parse({name: values[name] for name in names if name in values}, into, strict=False, spelt=spelt)


def _names(*kinds: type[Settings]) -> list[str]:
    return sorted({in_files(one) for kind in kinds for one in fields(kind)})


def _why_not(key: str, known: list[str]) -> str:
    if any(word in key.lower() for word in SECRETS):
        return (
            "no secret belongs into this file; name a file of its own by sasl.password.file or ssl.key.password.file "
            "in the file that client_properties names"
        )
    return unknown(key, known).partition(" Known are")[0]


def cache_folder() -> Path:
    """Return ${XDG_CACHE_HOME:-~/.cache}/tailpack, for files that can be made or fetched again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tailpack"
