"""Made-up months look like the real files, and say truly what is wrong in them."""

from pathlib import Path

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bench.taxi import made_up
from bench.taxi.columns import find_columns
from bench.taxi.made_up import make_up
from bench.taxi.months import Month

FEBRUARY = Month(2016, 2)


@pytest.mark.parametrize("generation", ["zones", "coordinates"])
def test_equal_seeds_make_equal_files_and_others_do_not(tmp_path: Path, generation: made_up.Generation) -> None:
    tables = []
    for number, seed in enumerate((3, 3, 4)):
        file = tmp_path / f"{number}.parquet"
        make_up(file, FEBRUARY, 3000, seed, generation)
        tables.append(pq.read_table(file))

    assert tables[0].equals(tables[1])
    assert not tables[0].equals(tables[2])
    assert (find_columns(tables[0].column_names).zone is None) == (generation == "coordinates")


def test_dirt_is_there_as_often_as_it_says(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(made_up, "CHUNK", 7000)  # so that several make the file
    file = tmp_path / "y.parquet"

    made = make_up(file, FEBRUARY, 30_000, 1, "zones")
    table = pq.read_table(file)
    began, ended = (table.column(1).cast("int64").fill_null(-1).to_numpy() // 10**6), table.column(2).cast("int64")
    lasts = ended.to_numpy() // 10**6 - began
    inside = (began >= FEBRUARY.began_s) & (began < FEBRUARY.ended_s)

    assert table.num_rows == made.rows == 30_000
    assert np.count_nonzero(began == -1) == made.dropped.unreadable > 0
    assert np.count_nonzero(~inside & (began != -1)) == made.dropped.other_month > 0
    assert np.count_nonzero(inside & (lasts < 0)) == made.dropped.backwards > 0
    same = ["VendorID", "tpep_pickup_datetime", "tpep_dropoff_datetime", "PULocationID", "DOLocationID"]
    different = table.group_by(same).aggregate([([], "count_all")]).num_rows
    assert 30_000 - different == made.dropped.duplicate > 0


def test_text_and_parquet_hold_the_same_trips(tmp_path: Path) -> None:
    for form in ("csv", "parquet"):
        make_up(tmp_path / f"y.{form}", FEBRUARY, 2000, 5, "coordinates")

    lines = (tmp_path / "y.csv").read_bytes().split(b"\r\n")
    text = pyarrow.csv.read_csv(tmp_path / "y.csv")

    assert lines[0].startswith(b"vendor_id,pickup_datetime,")
    assert lines[1].strip() == b""  # as in the files of those years
    assert text.column("trip_distance").equals(pq.read_table(tmp_path / "y.parquet").column("trip_distance"))
