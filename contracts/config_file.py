"""Settings of a process in a TOML file: their names are the keys, and variables of the environment stand above it."""

import tomllib
from collections.abc import Mapping
from dataclasses import Field, fields
from pathlib import Path
from typing import Any, Final

import msgspec

from contracts.settings import Settings, unknown
from contracts.validation import InvalidSettingsError, in_files, parse, variable

SECRETS: Final = ("password", "secret", "token")


def read_file(path: Path) -> dict[str, Any]:
    """Return what the file says. Raises InvalidSettingsError: it cannot be read, or is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as missing:
        raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
    except ValueError as wrong:
        raise InvalidSettingsError([f"{path}: no TOML ({wrong})"]) from wrong


def strangers(path: Path, told: Mapping[str, Any], *kinds: type[Settings]) -> list[str]:
    """Return a sentence for each key of a file that none of `kinds` has."""
    known = _names(*kinds)
    return [f"{path}: {key}: {_why_not(key, known)}" for key in told if key not in known]


def swallowed(told: Mapping[str, Any], table: str, *kinds: type[Settings]) -> str:
    """Return that settings of `kinds` stand below [table], where TOML takes them for the table's; empty: none do."""
    inside = told.get(table)
    below = [key for key in _names(*kinds) if key in inside] if isinstance(inside, dict) else []
    return f"; {', '.join(below)}: below [{table}], so inside it; settings stand above that line" if below else ""


def from_file(path: Path, told: Mapping[str, Any], environ: Mapping[str, str], into: type[Settings]) -> Any:
    """Return an `into` of what `environ` says, and else the file. A table stands for text that holds JSON.

    Raises InvalidSettingsError naming every value that is wrong, each by the place where it was told.
    """

    def spelt(one: "Field[Any]") -> str:
        return variable(one) if environ.get(variable(one)) else f"{path}: {in_files(one)}"

    values = {f"{path}: {key}": _as_text(value) for key, value in told.items()} | dict(environ)
    names = map(spelt, fields(into))
    return parse({name: values[name] for name in names if name in values}, into, strict=False, spelt=spelt)


def _names(*kinds: type[Settings]) -> list[str]:
    return sorted({in_files(one) for kind in kinds for one in fields(kind)})


def _as_text(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


def _why_not(key: str, known: list[str]) -> str:
    if any(word in key.lower() for word in SECRETS):
        return (
            "no secret belongs into this file; name a file of its own by sasl.password.file or ssl.key.password.file "
            "in the file that client_properties names"
        )
    return unknown(key, known).partition(" Known are")[0]
