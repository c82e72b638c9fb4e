"""What became of the rows of the trip records."""

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Dropped:
    """Rows left out, by the first rule that each of them breaks. The order of the fields is the order of the rules."""

    unreadable: int = 0
    """Pick-up or drop-off time is missing, or no time."""
    other_month: int = 0
    """Picked up outside the month of the file, or the month asked for."""
    backwards: int = 0
    """Dropped off before it was picked up."""
    distance: int = 0
    """Distance missing, negative or above the limit. Only where a limit is asked for."""
    fare: int = 0
    """Fare missing, negative or above the limit. Only where a limit is asked for."""
    duplicate: int = 0
    """The same trip has been counted."""

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(getattr(self, rule) for rule in RULES)


RULES = tuple(field.name for field in fields(Dropped))
"""Names of the rules, in the order in which they are asked."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A trace was built. rows = trips + dropped.rows; events + outside = trips times the events of each."""

    rows: int
    trips: int
    dropped: Dropped
    events: int
    """In the trace."""
    outside: int
    """Events of trips that were kept, after the last second of the trace."""
    duration_s: int
    partitions: int
    largest: int
    """Most events in one second, all partitions together."""
    hottest_share: float
    """Share of all events in the partition that has most of them."""
