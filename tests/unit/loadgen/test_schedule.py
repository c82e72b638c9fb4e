"""A schedule keeps every event, in its second, on its partition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadgen.schedule import SECOND_US, Schedule, Spacing, Split, build_schedule, schedule_chunks

counts_1d = arrays(np.int64, st.integers(1, 8), elements=st.integers(0, 40))
counts_2d = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(0, 20))
spacings = st.sampled_from(Spacing)
seeds = st.integers(0, 2**32)


def table_of(schedule: Schedule, seconds: int, partitions: int) -> np.ndarray:
    """Count the events of each second and partition."""
    table = np.zeros((seconds, partitions), dtype=np.int64)
    np.add.at(table, (schedule.offset_us // SECOND_US, schedule.partition), 1)
    return table


@given(counts_1d, spacings, st.sampled_from([Split.EVEN, Split.RANDOM]), st.integers(1, 7), seeds)
def test_every_event_lies_in_its_second_in_order(counts, spacing, split, partitions, seed) -> None:
    schedule = build_schedule(counts, spacing=spacing, split=split, partitions=partitions, seed=seed)
    assert len(schedule) == counts.sum()
    assert (np.diff(schedule.offset_us) >= 0).all()
    assert table_of(schedule, len(counts), partitions).sum(axis=1).tolist() == counts.tolist()


@given(counts_2d, spacings, seeds)
def test_a_partition_table_is_kept_exactly(counts, spacing, seed) -> None:
    schedule = build_schedule(counts, spacing=spacing, split=Split.TABLE, partitions=counts.shape[1], seed=seed)
    assert (np.diff(schedule.offset_us) >= 0).all()
    assert table_of(schedule, *counts.shape).tolist() == counts.tolist()


@given(counts_1d, spacings, st.integers(1, 7), seeds)
def test_even_means_round_robin_across_seconds(counts, spacing, partitions, seed) -> None:
    schedule = build_schedule(counts, spacing=spacing, split=Split.EVEN, partitions=partitions, seed=seed)
    assert schedule.partition.tolist() == [number % partitions for number in range(counts.sum())]


@given(counts_2d, spacings, st.sampled_from(Split), st.integers(1, 60), st.integers(0, 100))
def test_the_parts_of_a_schedule_are_the_schedule(table, spacing, split, chunk_events, seed) -> None:
    counts = table if split is Split.TABLE else table.sum(axis=1)
    how = {"spacing": spacing, "split": split, "partitions": table.shape[1], "seed": seed}
    whole, parts = build_schedule(counts, **how), list(schedule_chunks(counts, chunk_events, **how))
    assert np.concatenate([part.offset_us for part in parts]).tolist() == whole.offset_us.tolist()
    assert np.concatenate([part.partition for part in parts]).tolist() == whole.partition.tolist()
    assert all(len(part) >= chunk_events for part in parts[:-1])


def test_a_burst_is_intended_at_the_start_of_its_second() -> None:
    schedule = build_schedule(np.array([2, 0, 3]), spacing=Spacing.BURST, split=Split.EVEN, partitions=2, seed=0)
    assert schedule.offset_us.tolist() == [0, 0, 2_000_000, 2_000_000, 2_000_000]


def test_a_hot_partition_is_spread_among_the_others_of_its_second() -> None:
    schedule = build_schedule(np.array([[1, 3]]), spacing=Spacing.SMOOTH, split=Split.TABLE, partitions=2, seed=0)
    assert schedule.partition.tolist() == [1, 0, 1, 1]


def test_poisson_gaps_are_exponential() -> None:
    schedule = build_schedule(np.full(200, 100), spacing=Spacing.POISSON, split=Split.EVEN, partitions=1, seed=3)
    gaps_us = np.diff(schedule.offset_us)
    assert gaps_us.std() == pytest.approx(gaps_us.mean(), rel=0.05)


def test_counts_that_do_not_fit_the_split_are_refused() -> None:
    for counts, split in ((np.array([1, 2]), Split.TABLE), (np.array([[1, 2]]), Split.EVEN)):
        with pytest.raises(ValueError, match="does not fit counts of shape"):
            build_schedule(counts, spacing=Spacing.BURST, split=split, partitions=3, seed=0)
