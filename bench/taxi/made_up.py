"""Months of taxi trips that nobody drove, in the form of the real files, dirt included: for tests and the bench."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from bench.taxi.months import Month
from bench.taxi.outcome import Dropped

Generation = Literal["zones", "coordinates"]
"""`zones`: as published since mid-2016; `coordinates`: as published before."""
CHUNK: Final = 500_000
"""Rows in memory at a time."""
ZONES: Final = 263
UNKNOWN_ZONE: Final = 264
SKEW: Final = 0.6
"""Pick-ups in the zone of rank r ∝ r^−SKEW: the busiest has one in twenty."""
HOURS: Final = (40, 28, 20, 14, 10, 9, 20, 36, 45, 46, 45, 47, 50, 50, 52, 50, 43, 50, 60, 62, 58, 57, 55, 48)
"""How busy each hour of the day is, relative to the others."""
MEDIAN_TRIP_S: Final = 660.0
MILES_PER_S: Final = 0.0032
UNREADABLE, OTHER_MONTH, BACKWARDS, REPEATED, REVERSED = 0.0005, 0.0005, 0.001, 0.0005, 0.002
"""Shares of rows with each kind of dirt. A reversed trip is there again with its amounts below zero."""
NOWHERE: Final = 0.02
"""Share of trips whose place is not known."""

Numbers = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class MadeUp:
    """What was written: rows, and those among them that must not count."""

    rows: int
    dropped: Dropped


@dataclass(frozen=True, slots=True)
class _Trips:
    """Columns of a chunk; times are seconds since 1970 of New York's clocks."""

    picked_up: Numbers
    dropped_off: Numbers
    readable: Numbers
    vendor: Numbers
    passengers: Numbers
    miles: Numbers
    zones: tuple[Numbers, Numbers]
    """Of pick-up and drop-off; 0 where it is not known."""
    fare: Numbers

    def at(self, rows: Numbers, sign: int) -> "_Trips":
        """Return these rows, their fares times `sign`."""
        return _Trips(
            picked_up=self.picked_up[rows],
            dropped_off=self.dropped_off[rows],
            readable=self.readable[rows],
            vendor=self.vendor[rows],
            passengers=self.passengers[rows],
            miles=self.miles[rows],
            zones=(self.zones[0][rows], self.zones[1][rows]),
            fare=sign * self.fare[rows],
        )


def make_up(file: Path, month: Month, rows: int, seed: int, generation: Generation) -> MadeUp:
    """Write a month of `rows` rows, .csv or .parquet by the name of the file. Equal arguments, equal file.

    Raises OSError when the file cannot be written.
    """
    chance = np.random.default_rng(seed)
    written, dropped = 0, np.zeros(4, dtype=np.int64)
    with _Writer(file) as writer:
        while written < rows:
            together = min(CHUNK, rows - written)
            again = round((REPEATED + REVERSED) * together)
            trips, dirt = _chunk(chance, month, together - again)
            columns = [_table(trips, generation)]
            if again:
                repeated = trips.at(chance.choice(np.flatnonzero(dirt == 0), again, replace=False), 1)
                reversals = round(again * REVERSED / (REPEATED + REVERSED))
                columns.append(_table(repeated.at(np.arange(again)[reversals:], 1), generation))
                columns.append(_table(repeated.at(np.arange(again)[:reversals], -1), generation))
            writer.write(pa.concat_tables(columns))
            dropped += np.array([*(np.count_nonzero(dirt == kind) for kind in (1, 2, 3)), again])
            written += together
    unreadable, other_month, backwards, duplicate = map(int, dropped)
    return MadeUp(rows, Dropped(unreadable, other_month, backwards, duplicate=duplicate))


def _chunk(chance: np.random.Generator, month: Month, rows: int) -> tuple[_Trips, Numbers]:
    """Return trips, and what is wrong with each: 0 nothing, 1 unreadable, 2 other month, 3 backwards."""
    dirt = np.searchsorted(np.cumsum([UNREADABLE, OTHER_MONTH, BACKWARDS]), chance.random(rows), side="right")
    dirt = (dirt + 1) % 4
    weights = np.tile(HOURS, month.days) / (sum(HOURS) * month.days)
    hour = chance.choice(len(weights), rows, p=weights)
    picked_up = month.began_s + 3600 * hour + chance.integers(0, 3600, rows)
    picked_up[dirt == 2] -= 86_400 * chance.integers(month.days, 4000, rows)[dirt == 2]
    lasts_s = np.clip(chance.lognormal(np.log(MEDIAN_TRIP_S), 0.6, rows), 60, 7200).astype(np.int64)
    miles = np.round(lasts_s * MILES_PER_S * chance.uniform(0.5, 1.5, rows), 2)
    rank = np.arange(1, ZONES + 1) ** -SKEW
    zone = np.random.default_rng(ZONES).permutation(ZONES) + 1
    zones = tuple(
        np.where(chance.random(rows) < NOWHERE, 0, zone[chance.choice(ZONES, rows, p=rank / rank.sum())])
        for _ in range(2)
    )
    trips = _Trips(
        picked_up=picked_up,
        dropped_off=picked_up + np.where(dirt == 3, -lasts_s, lasts_s),
        readable=dirt != 1,
        vendor=chance.integers(1, 3, rows),
        passengers=chance.integers(1, 7, rows),
        miles=miles,
        zones=(zones[0], zones[1]),
        fare=np.round(2.5 + 2.5 * miles, 2),
    )
    return trips, dirt


def _table(trips: _Trips, generation: Generation) -> pa.Table:
    return pa.table(_with_zones(trips) if generation == "zones" else _with_coordinates(trips))


def _with_zones(trips: _Trips) -> dict[str, Any]:
    ones, zeros = np.ones(len(trips.miles)), np.zeros(len(trips.miles))
    picked_up, dropped_off = _times(trips)
    return {
        "VendorID": trips.vendor.astype(np.int32),
        "tpep_pickup_datetime": picked_up,
        "tpep_dropoff_datetime": dropped_off,
        "passenger_count": trips.passengers,
        "trip_distance": trips.miles,
        "RatecodeID": ones.astype(np.int64),
        "store_and_fwd_flag": pa.array(np.full(len(ones), "N")),
        "PULocationID": np.where(trips.zones[0] == 0, UNKNOWN_ZONE, trips.zones[0]).astype(np.int32),
        "DOLocationID": np.where(trips.zones[1] == 0, UNKNOWN_ZONE, trips.zones[1]).astype(np.int32),
        "payment_type": ones.astype(np.int64),
        "fare_amount": trips.fare,
        "extra": zeros,
        "mta_tax": 0.5 * ones,
        "tip_amount": np.round(0.2 * trips.fare, 2),
        "tolls_amount": zeros,
        "improvement_surcharge": 0.3 * ones,
        "total_amount": np.round(1.2 * trips.fare + 0.8, 2),
        "congestion_surcharge": 2.5 * ones,
        "Airport_fee": zeros,
    }


def _with_coordinates(trips: _Trips) -> dict[str, Any]:
    zeros = np.zeros(len(trips.miles))
    picked_up, dropped_off = _times(trips)
    (from_lon, from_lat), (to_lon, to_lat) = (_coordinates(zone, trips.picked_up) for zone in trips.zones)
    return {
        "vendor_id": pa.array(np.array(["CMT", "VTS"])[trips.vendor - 1]),
        "pickup_datetime": picked_up,
        "dropoff_datetime": dropped_off,
        "passenger_count": trips.passengers,
        "trip_distance": trips.miles,
        "pickup_longitude": from_lon,
        "pickup_latitude": from_lat,
        "rate_code": np.ones(len(zeros), dtype=np.int64),
        "store_and_fwd_flag": pa.array(np.full(len(zeros), "N")),
        "dropoff_longitude": to_lon,
        "dropoff_latitude": to_lat,
        "payment_type": pa.array(np.full(len(zeros), "CRD")),
        "fare_amount": trips.fare,
        "surcharge": zeros,
        "mta_tax": zeros + 0.5,
        "tip_amount": np.round(0.2 * trips.fare, 2),
        "tolls_amount": zeros,
        "total_amount": np.round(1.2 * trips.fare + 0.5, 2),
    }


def _times(trips: _Trips) -> Iterator[pa.Array]:
    """Yield both times; the pick-up is null where it is not readable."""
    for seconds, mask in ((trips.picked_up, ~trips.readable), (trips.dropped_off, None)):
        yield pa.array(seconds * 1_000_000, mask=mask).cast(pa.timestamp("us"))


def _coordinates(zone: Numbers, salt: Numbers) -> tuple[Numbers, Numbers]:
    """Return longitude and latitude inside each zone, spread by `salt`; 0, 0 where the zone is not known."""
    known = zone > 0
    east, north = (zone - 1) % 17, (zone - 1) // 17
    longitude = -74.02 + 0.012 * east + 1e-5 * (salt % 997)
    latitude = 40.62 + 0.014 * north + 1e-5 * (salt % 991)
    return np.where(known, np.round(longitude, 6), 0.0), np.where(known, np.round(latitude, 6), 0.0)


class _Writer:
    """Writes tables one after the other, as Parquet, or as text with the empty second line of the old files."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._parquet: Any = None
        self._text: Any = None

    def __enter__(self) -> "_Writer":
        if self._file.suffix == ".csv":
            self._text = self._file.open("wb")
        return self

    def write(self, table: pa.Table) -> None:
        """Append the rows of `table`."""
        if self._text is not None:
            if self._text.tell() == 0:
                self._text.write((",".join(table.column_names) + "\r\n\r\n").encode())
            options = pyarrow.csv.WriteOptions(include_header=False, quoting_style="none")
            pyarrow.csv.write_csv(_as_text(table), self._text, options)
            return
        if self._parquet is None:
            self._parquet = pq.ParquetWriter(self._file, table.schema)
        self._parquet.write_table(table)

    def __exit__(self, *_: object) -> None:
        for opened in (self._parquet, self._text):
            if opened is not None:
                opened.close()


def _as_text(table: pa.Table) -> pa.Table:
    """Write times to the second, and something that is none where there is none."""
    for index, name in enumerate(table.column_names):
        if pa.types.is_timestamp(table.schema.field(index).type):
            text = table.column(index).cast(pa.timestamp("s")).cast(pa.string())
            table = table.set_column(index, name, pc.fill_null(text, "not a time"))
    return table
