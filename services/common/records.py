"""A record as a stage sees it, and what it may want written because of it. No Faust, no Kafka: values only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from services.common.errors import RefusedError

MAX_DIGITS: Final = 16
"""Of a number in a header. Microseconds of that length reach to the year 2286; longer ones are no dates."""


@dataclass(frozen=True, slots=True)
class Incoming:
    """One record of an input topic, undecoded. `value` is None for a tombstone."""

    topic: str
    partition: int
    offset: int
    timestamp_us: int
    """The record's own timestamp (Kafka keeps milliseconds)."""
    key: bytes | None
    value: bytes | None
    headers: Mapping[str, bytes]

    def header_us(self, name: str) -> int:
        """Return the time in header `name`, the record's own timestamp without one.

        Raises RefusedError for a header that is no decimal number of microseconds.
        """
        number = self.header_number(name)
        return self.timestamp_us if number is None else number

    def header_number(self, name: str) -> int | None:
        """Return header `name` as a number, None without one. Raises RefusedError for what is no decimal number."""
        text = self.headers.get(name)
        if text is None:
            return None
        if not text.isdigit() or len(text) > MAX_DIGITS:
            raise RefusedError((f"header {name} is no decimal number of at most {MAX_DIGITS} digits: {text[:40]!r}",))
        return int(text)


@dataclass(frozen=True, slots=True)
class Effect:
    """One record to write. `id` None: writing it twice does no harm (a table's changelog)."""

    id: str | None
    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    """None: by the key."""
