"""Fifteen years of headers say the same things in different words."""

import pytest

from bench.taxi.columns import find_columns

HEADERS = {
    "2009": "vendor_name,Trip_Pickup_DateTime,Trip_Dropoff_DateTime,Passenger_Count,Trip_Distance,Start_Lon,Start_Lat,"
    "Rate_Code,store_and_forward,End_Lon,End_Lat,Payment_Type,Fare_Amt,surcharge",
    "2013": "vendor_id,pickup_datetime,dropoff_datetime,passenger_count,trip_distance,pickup_longitude,pickup_latitude,"
    "rate_code,store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,fare_amount,surcharge",
    "2014, spaces": "vendor_id, pickup_datetime, dropoff_datetime, passenger_count, trip_distance, pickup_longitude,"
    " pickup_latitude, rate_code, store_and_fwd_flag, dropoff_longitude, dropoff_latitude, payment_type, fare_amount",
    "2015": "VendorID,tpep_pickup_datetime,tpep_dropoff_datetime,passenger_count,trip_distance,pickup_longitude,"
    "pickup_latitude,RateCodeID,store_and_fwd_flag,dropoff_longitude,dropoff_latitude,payment_type,fare_amount",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_a_file_with_coordinates_is_understood_in_every_year(header: str) -> None:
    found = find_columns(header.split(","))

    assert (found.picked_up, found.dropped_off) == (1, 2)
    assert found.coordinates == (5, 6)
    assert found.zone is None
    assert (found.distance, found.fare) == (4, 12)
    assert set(found.alike) == {0, 3, 4, 5, 6, 9, 10}


@pytest.mark.parametrize("write", [str, str.upper, lambda name: f" {name.replace('_', ' ')} "])
def test_a_file_with_zones_is_understood_however_its_names_are_written(write) -> None:
    names = ("VendorID", "tpep_pickup_datetime", "tpep_dropoff_datetime", "PULocationID", "DOLocationID")

    found = find_columns([write(name) for name in names])

    assert (found.picked_up, found.dropped_off, found.zone, found.coordinates) == (1, 2, 3, None)
    assert found.used == (0, 1, 2, 3, 4)


def test_only_the_columns_that_are_needed_are_read() -> None:
    names = ["tip", "pickup_datetime", "toll", "dropoff_datetime", "total", "trip_distance"]

    assert find_columns(names).used == (1, 3, 5)


def test_what_is_no_trip_record_is_refused_by_the_name_of_what_is_missing() -> None:
    with pytest.raises(ValueError, match=r"no column for drop-off time .*its columns are id, pickup_datetime$"):
        find_columns(["id", "pickup_datetime"])
    with pytest.raises(ValueError, match=r"no column for pick-up time .* and drop-off time .*a, b, c, d…$"):
        find_columns(["a", "b", "c", "d", "e"])
    with pytest.raises(ValueError, match="2 columns that are called pickupdatetime"):
        find_columns(["pickup_datetime", "Pickup_DateTime", "dropoff_datetime"])
