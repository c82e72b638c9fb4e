"""Random input for parsers: records with extreme values, damaged bytes and damaged lines."""

import random
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from hostile import encode, mutate

NOW_US: Final = 1_700_000_000_000_000
CARD: Final = "4111111111111111"
VALUES: Final = (
    "0", "-1", "0.0", "nan", "inf", "-inf", "1e308", "1e-320", "9223372036854775807", "9" * 23, "9" * 400, "9" * 5000,
    '""', '"x"',    '"\\u0000"', "true", "[]", "[1,2]", "[nan]", '["a"]', "{a=1}", "1979-05-27T07:32:00Z", "07:32:00",
    "0x10",    '"../../etc/passwd"', f'"{"a" * 5000}"', '"taxi"', '"kg"', '"25s"', '"1e400 h"', "[" * 5000,
)  # fmt: skip
"""Values of settings in a TOML file; without their quotes, of environment variables."""
PIECES: Final = (
    b"", b",", b"\n", b'"', b"-", b"nan", b"inf", b"1e400", b"9" * 30, b"1e18", b"\xff", b"\0", b"\r", b"#", b" ",
    "²".encode(), b"0.0000001", b"2678400", b"99999", b"PAR1", b"9" * 5000, b"%", b"?", b"[", b"{",
)  # fmt: skip


class Inputs:
    """The source of all inputs: the same ones for the same seed."""

    def __init__(self, seed: int, folder: Path) -> None:
        self._chance, self._folder = random.Random(seed), folder

    def _record(self, *bases: Any) -> bytes:
        """Return one of the records as JSON, with extreme values or damaged."""
        return encode(mutate(self._chance.choice(bases), self._chance), self._chance)

    def _value(self, *bases: Any) -> bytes | None:
        """Return what `_record` does, or one time in twenty no bytes."""
        return self._record(*bases) if self._chance.random() < 0.95 else self._chance.choice((None, b""))

    def _text(self) -> str:
        """Return the value of a setting as text."""
        letters = self._chance.choice((string.printable, "é²\u0663\udcff\0"))
        drawn = "".join(self._chance.choices(letters, k=9))
        return self._chance.choice((drawn, self._chance.choice(VALUES).strip('"')))

    def _spliced(self, text: bytes, pieces: Sequence[bytes] = PIECES) -> bytes:
        """Return the text with some pieces inserted, or in the place of its own."""
        data = bytearray(text)
        for _ in range(self._chance.choice((1, 1, 2, 4))):
            at = self._chance.randrange(len(data) + 1)
            data[at : at + self._chance.choice((0, 1, 3))] = self._chance.choice(pieces)
        return bytes(data)

    def _damaged(self, whole: bytes, first: int = 0) -> bytes:
        """Return the bytes with some changed from `first` on, one time in ten cut off."""
        data = bytearray(whole)
        for _ in range(self._chance.choice((1, 2, 5))):
            data[self._chance.randrange(first, len(data))] = self._chance.randrange(256)
        if self._chance.random() < 0.1:
            del data[self._chance.randrange(first, len(data)) :]
        return bytes(data)

    def _toml(self, text: str) -> str:
        """Return a TOML file in which some lines have another value, are missing or doubled."""
        lines = text.splitlines()
        for _ in range(self._chance.choice((1, 1, 2, 3))):
            at = self._chance.randrange(len(lines))
            key = lines[at].split("=")[0] if "=" in lines[at] else "x "
            section = f"[{self._chance.choice(('load', 'policy', 'x', 'payment', '[stages]'))}]"
            value = f"{key}= {self._chance.choice(VALUES)}"
            lines[at] = self._chance.choice((value, value, "", lines[at] * 2, section, "\0"))
        return "\n".join(lines)

    def _file(self, name: str, content: str | bytes) -> Path:
        path = self._folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogatepass"))
        return path
