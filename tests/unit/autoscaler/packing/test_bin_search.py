"""The least bins of many rows at once: what every placement and a giving-up search say of it."""

from functools import cache
from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.packing import least_bins as search
from autoscaler.packing.least_bins import least_bins, packed
from report.measures import per_second_packing


def rows_of(*rows: list[int]) -> np.ndarray:
    table = np.zeros((len(rows), max(map(len, rows), default=1) or 1), np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = sorted(row, reverse=True)
    return table


@cache
def fits(items: tuple[int, ...], room: tuple[int, ...]) -> bool:
    """Every placement there is, equal bins told apart by their room only."""
    if not items or sum(items) > sum(room):
        return not items
    return any(
        fits(items[1:], tuple(sorted((*room[:k], free - items[0], *room[k + 1 :]))))
        for k, free in enumerate(room)
        if free >= items[0] and (k == 0 or room[k - 1] != free)
    )


def least_by_trying(items: list[int], capacity: int) -> int:
    small = tuple(sorted((item for item in items if 0 < item < capacity), reverse=True))
    alone = sum(item >= capacity for item in items)
    return alone + next(n for n in range(len(small) + 1) if fits(small, (capacity,) * n))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.lists(st.integers(0, 24), max_size=9), min_size=1, max_size=5), st.integers(1, 20))
def test_every_row_has_the_least_bins_there_are(rows: list[list[int]], capacity: int) -> None:
    enough, least = least_bins(rows_of(*rows), capacity)
    assert enough.tolist() == least.tolist() == [least_by_trying(row, capacity) for row in rows]


@pytest.mark.parametrize(("each", "capacity"), [(25, 100), (34, 100), (40, 100), (52, 100), (330, 1000)])
def test_long_rows_of_alike_items_have_the_least_bins_too(each: int, capacity: int) -> None:
    rows = np.random.default_rng(each).poisson(each, (4, 14)).clip(1, capacity).tolist()
    enough, least = least_bins(rows_of(*rows), capacity)
    assert enough.tolist() == least.tolist() == [least_by_trying(row, capacity) for row in rows]


@pytest.mark.parametrize("bursts", [True, False])
def test_the_packing_of_a_load_is_the_least_of_each_second(bursts: bool) -> None:
    counts = np.random.default_rng(3).poisson(60, (40, 12))
    found = per_second_packing(counts, service_rate=400, latency_target_s=0.5, bursts=bursts)
    capacity = 200 if bursts else 400
    solved = [least_by_trying(row, capacity) for row in counts.tolist()]
    assert found.replicas.tolist() == solved
    assert found.gap_minutes == 0
    assert found.minutes == sum(solved) / 60


def test_a_search_that_is_given_up_says_between_what_the_least_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.random.default_rng(5).poisson(33, (10, 100))
    exactly = per_second_packing(counts, service_rate=100, latency_target_s=1.0, bursts=False)
    monkeypatch.setattr(search, "FIRST_STEPS", 1)
    monkeypatch.setattr(search, "ALL_STEPS", 1)
    hasty = per_second_packing(counts, service_rate=100, latency_target_s=1.0, bursts=False)
    assert hasty.gap_minutes > exactly.gap_minutes
    assert (hasty.replicas <= exactly.replicas).all()
    assert (exactly.replicas <= exactly.enough).all()
    assert (exactly.enough <= hasty.enough).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 60), max_size=60), st.integers(1, 50))
def test_the_contents_of_the_bins_are_the_items(items: list[int], capacity: int) -> None:
    packing = packed(tuple(sorted(items, reverse=True)), capacity)
    assert sorted(chain(*packing.bins)) == sorted(item for item in items if item)
    assert all(content and (sum(content) <= capacity or len(content) == 1) for content in packing.bins)
    enough, least = least_bins(rows_of(items), capacity)
    assert (len(packing.bins), packing.least) == (enough[0], least[0])
