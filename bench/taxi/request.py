"""What trace is asked for, and whether it can be."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from bench.taxi.months import Month
from contracts.validation import InvalidSettingsError

By = Literal["uniform", "zone"]
"""How trips are spread over partitions: by a hash of the trip, or by the place where it began."""
Ends = Literal["both", "pickup", "dropoff"]
"""Which ends of a trip are events."""
MOST_CELLS: Final = 10_000_000
"""Seconds times partitions of a trace: what fits in memory as a table, and what its readers can take."""
FINEST: Final = 1000
"""Speed factors are taken to a thousandth, so that seconds can be divided in whole numbers."""


@dataclass(frozen=True, slots=True)
class Request:
    """A trace of trips. Both events of a trip go to the same partition."""

    speed: Fraction = Fraction(40)
    """Seconds of the records that become one second of the trace."""
    partitions: int = 1
    by: By = "uniform"
    ends: Ends = "both"
    month: Month | None = None
    """Judge every file by this month, whatever its name says."""
    duration_s: int | None = None
    """Keep only the first seconds of the trace."""
    max_miles: float | None = None
    max_fare: float | None = None

    def __post_init__(self) -> None:
        """Raise InvalidSettingsError for what no trace can have, every mistake at once."""
        checks = (
            (self.speed >= Fraction(1, FINEST), f"--speed {float(self.speed):g}: must be {1 / FINEST:g} or more"),
            (self.partitions >= 1, f"--partitions {self.partitions}: must be at least 1"),
            (
                self.by == "uniform" or self.partitions > 1,
                "--by zone: needs --partitions, at least 2; with one there is nothing to spread",
            ),
            (self.duration_s is None or self.duration_s >= 1, f"--duration-s {self.duration_s}: must be at least 1"),
            (self.max_miles is None or self.max_miles >= 0, f"--max-miles {self.max_miles}: must not be negative"),
            (self.max_fare is None or self.max_fare >= 0, f"--max-fare {self.max_fare}: must not be negative"),
        )
        problems = [problem for good, problem in checks if not good]
        if problems:
            raise InvalidSettingsError(problems)


@dataclass(frozen=True, slots=True)
class Window:
    """The seconds of a trace, and the stretch of New York's clocks that they stand for."""

    began_s: int
    """Seconds since 1970-01-01 00:00 on the same clocks."""
    speed: Fraction
    duration_s: int
    partitions: int

    @property
    def cells(self) -> int:
        """Numbers in the trace: cell = second · partitions + partition."""
        return self.duration_s * self.partitions


def window_of(request: Request, first: Month, last: Month) -> Window:
    """Return the window of a trace from the beginning of `first` to the end of `last`.

    Raises InvalidSettingsError where the trace asked for is longer than that, or too large.
    """
    whole_s = math.ceil((last.ended_s - first.began_s) / request.speed)
    duration_s = request.duration_s or whole_s
    if duration_s > whole_s:
        months = str(first) if first == last else f"{first} to {last}"
        raise InvalidSettingsError(
            [f"--duration-s {duration_s}: {months} at speed {float(request.speed):g} is a trace of {whole_s} s"]
        )
    window = Window(first.began_s, request.speed, duration_s, request.partitions)
    if window.cells > MOST_CELLS:
        raise InvalidSettingsError(
            [
                f"{duration_s:,} seconds times {request.partitions:,} partitions are more than {MOST_CELLS:,} numbers; "
                "raise --speed, or name a shorter --duration-s or fewer --partitions"
            ]
        )
    return window


def parse_speed(text: str) -> Fraction:
    """Read a speed factor, to a thousandth. Raises ValueError."""
    try:
        speed = Fraction(text).limit_denominator(FINEST)
    except (ValueError, ZeroDivisionError):
        raise ValueError(f"{text!r} is no speed factor; write a number, such as 40") from None
    return speed
