"""Months of trip records: which one a file holds, and how many make one trace."""

import re
from calendar import monthrange
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

_NAMED: Final = re.compile(r"(?<!\d)(\d{4})-(\d{2})(?!\d)")


@dataclass(frozen=True, slots=True, order=True)
class Month:
    """A month on the clocks of New York. They are taken as they are: no time zone, no summer time."""

    year: int
    number: int

    @property
    def days(self) -> int:
        """How many it has."""
        return monthrange(self.year, self.number)[1]

    @property
    def began_s(self) -> int:
        """Its first second, in seconds since 1970-01-01 00:00 on the same clocks."""
        return int(datetime(self.year, self.number, 1, tzinfo=UTC).timestamp())

    @property
    def ended_s(self) -> int:
        """First second after it."""
        return self.began_s + 86_400 * self.days

    @property
    def following(self) -> "Month":
        """The month after it."""
        return Month(self.year + self.number // 12, self.number % 12 + 1)

    def __str__(self) -> str:
        return f"{self.year:04d}-{self.number:02d}"


def parse_month(text: str) -> Month:
    """Read YYYY-MM. Raises ValueError."""
    found = _NAMED.fullmatch(text.strip())
    if not found or not 1 <= int(found[2]) <= 12 or int(found[1]) < 1970:
        raise ValueError(f"{text!r} is no month; write YYYY-MM")
    return Month(int(found[1]), int(found[2]))


def month_in(name: str) -> Month | None:
    """Return the month that a file's name ends with, as in yellow_tripdata_2013-01.csv; None where it names none."""
    for found in reversed(list(_NAMED.finditer(name.replace("\\", "/").rsplit("/", 1)[-1]))):
        try:
            return parse_month(found[0])
        except ValueError:
            continue
    return None


def without_gap(months: Sequence[Month]) -> tuple[Month, Month]:
    """Return the first and the last of them. Raises ValueError where a month between them is missing."""
    first, last = min(months), max(months)
    month = first
    while month != last:
        month = month.following
        if month not in months:
            raise ValueError(f"{first} and {last} are there, {month} is missing; a trace has no gap")
    return first, last
