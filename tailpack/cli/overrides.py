"""What `--set KEY=VALUE` puts over a scenario."""

import tomllib
from collections.abc import Iterable
from typing import Any

from tailpack.errors import TailpackError


def parse_overrides(texts: Iterable[str]) -> dict[str, Any]:
    """Return key → value for texts such as `payment.heartbeat_s=3` or `policy=linear`; the last of one key counts.

    A value is read as TOML (numbers, true, false, quoted text), and as plain text where it is none.
    Raises TailpackError for a text without a key or without a value.
    """
    overrides: dict[str, Any] = {}
    for text in texts:
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise TailpackError(f"--set {text!r}: must be KEY=VALUE, for example payment.heartbeat_s=3")
        overrides[key] = _value(value)
    return overrides


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
