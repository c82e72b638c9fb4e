"""Which column of a file of trip records says what. Names changed four times in fifteen years; their sense did not.

Source: the TLC's data dictionaries, and the headers of its files from 2009 on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PICKED_UP: Final = ("tpeppickupdatetime", "lpeppickupdatetime", "trippickupdatetime", "pickupdatetime")
DROPPED_OFF: Final = ("tpepdropoffdatetime", "lpepdropoffdatetime", "tripdropoffdatetime", "dropoffdatetime")
ZONE: Final = ("pulocationid",)
LONGITUDE: Final = ("pickuplongitude", "startlon")
LATITUDE: Final = ("pickuplatitude", "startlat")
DISTANCE: Final = ("tripdistance",)
FARE: Final = ("fareamount", "fareamt")
ALIKE: Final = (
    ("vendorid", "vendorname", "hvfhslicensenum"),
    ("passengercount",),
    ("dolocationid",),
    ("dropofflongitude", "endlon"),
    ("dropofflatitude", "endlat"),
)
"""What tells two trips apart, besides times, pick-up place and distance."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns of one file, by their place in it; None where the file has no such column."""

    picked_up: int
    dropped_off: int
    zone: int | None
    coordinates: tuple[int, int] | None
    """Longitude and latitude of the pick-up."""
    distance: int | None
    fare: int | None
    alike: tuple[int, ...]
    """Equal in two records of the same trip: the pick-up place, the distance, and ALIKE as far as it is there."""

    @property
    def used(self) -> tuple[int, ...]:
        """Places of all of them, each once, in the order of the file."""
        single = (self.picked_up, self.dropped_off, self.zone, self.distance, self.fare)
        found = {place for place in (*single, *(self.coordinates or ()), *self.alike) if place is not None}
        return tuple(sorted(found))


def find_columns(names: Sequence[str]) -> Columns:
    """Return what the columns called `names` say. Case, spaces and underscores do not matter.

    Raises ValueError where a column is missing that every trip needs, or is there twice.
    """
    plain = [_plain(name) for name in names]
    picked_up, dropped_off = _place(plain, PICKED_UP), _place(plain, DROPPED_OFF)
    missing = [
        f"{what} time ({wanted})"
        for place, what, wanted in (
            (picked_up, "pick-up", "tpep_pickup_datetime"),
            (dropped_off, "drop-off", "tpep_dropoff_datetime"),
        )
        if place is None
    ]
    if picked_up is None or dropped_off is None:
        seen = ", ".join(name.strip() for name in names[:4])
        raise ValueError(f"has no column for {' and '.join(missing)}; its columns are {seen}{'…' * (len(names) > 4)}")
    zone, distance = _place(plain, ZONE), _place(plain, DISTANCE)
    longitude, latitude = _place(plain, LONGITUDE), _place(plain, LATITUDE)
    others = (zone, longitude, latitude, distance, *(_place(plain, known) for known in ALIKE))
    return Columns(
        picked_up=picked_up,
        dropped_off=dropped_off,
        zone=zone,
        coordinates=None if longitude is None or latitude is None else (longitude, latitude),
        distance=distance,
        fare=_place(plain, FARE),
        alike=tuple(place for place in others if place is not None),
    )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _place(plain: Sequence[str], known: Sequence[str]) -> int | None:
    """Return where one of the `known` names is; the earlier ones go first. Raises ValueError where it is twice."""
    for name in known:
        if (count := plain.count(name)) > 1:
            raise ValueError(f"has {count} columns that are called {name}")
        if count:
            return plain.index(name)
    return None
