"""Where a trip began decides its partition, as Kafka's clients would."""

from collections import Counter

from aiokafka.partitioner import DefaultPartitioner

from bench.taxi import places


def test_every_place_has_the_partition_that_a_client_of_kafka_gives_its_key() -> None:
    client = DefaultPartitioner()

    for kind in ("zone", "cell"):
        expected = [client(key.encode(), list(range(9)), list(range(9))) for key in places.keys(kind)]
        assert places.partitions_of(kind, 9) == expected


def test_keys_name_the_zone_or_the_south_west_corner_of_the_cell() -> None:
    zones, cells = places.keys("zone"), places.keys("cell")

    assert (zones[1], zones[265], zones[0]) == ("zone 1", "zone 265", "zone 264")
    assert len(zones) == places.ZONES + 1
    assert (cells[0], cells[1]) == ("cell -7430 4045", "cell -7429 4045")
    assert cells[places.COLUMNS] == "cell -7430 4046"
    assert (cells[places.OUTSIDE], len(cells)) == ("cell outside", places.OUTSIDE + 1)
    assert len(set(cells)) == len(cells)


def test_every_partition_gets_some_of_the_places() -> None:
    sizes = Counter(places.partitions_of("zone", 9))

    assert set(sizes) == set(range(9))
    assert max(sizes.values()) < 3 * min(sizes.values())
