"""A schedule has every event in its second and on its partition."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from loadgen.schedule import EACH_SECOND, SECOND_US, Bursts, Schedule, Spacing, Split, build_schedule, schedule_chunks

counts_1d = arrays(np.int64, st.integers(1, 8), elements=st.integers(0, 40))
counts_2d = arrays(np.int64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(0, 20))
spacings = st.sampled_from(Spacing)
seeds = st.integers(0, 2**32)


@st.composite
def all_bursts(draw: st.DrawFn) -> Bursts:
    period_s = draw(st.sampled_from([0.1, 0.7, 0.95, 1.0, 1.3, 7.0]))
    shares = st.floats(0, 1, exclude_max=True)
    phase_s = draw(st.one_of(st.just("random"), shares.map(lambda share: share * period_s)))
    drift_s = draw(st.sampled_from([0.0, 0.6]))
    return Bursts(
        burst_period_s=period_s, burst_phase_s=phase_s, burst_jitter_s=draw(shares) * period_s, burst_drift_s=drift_s
    )


def table_of(schedule: Schedule, seconds: int, partitions: int) -> np.ndarray:
    """Count the events of each second and partition."""
    table = np.zeros((seconds, partitions), dtype=np.int64)
    np.add.at(table, (schedule.offset_us // SECOND_US, schedule.partition), 1)
    return table


@given(counts_1d, spacings, st.sampled_from([Split.EVEN, Split.RANDOM]), st.integers(1, 7), seeds)
def test_events_are_in_order_and_in_their_seconds(counts, spacing, split, partitions, seed) -> None:
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
def test_the_even_split_is_round_robin_across_seconds(counts, spacing, partitions, seed) -> None:
    schedule = build_schedule(counts, spacing=spacing, split=Split.EVEN, partitions=partitions, seed=seed)
    assert schedule.partition.tolist() == [number % partitions for number in range(counts.sum())]


@given(counts_2d, spacings, st.just(EACH_SECOND) | all_bursts(), st.sampled_from(Split), st.integers(1, 60))
def test_a_schedule_has_all_events_in_order_and_its_chunks_join_to_it(table, spacing, bursts, split, seed) -> None:
    """The seed is the number of events of a chunk, too."""
    counts = table if split is Split.TABLE else table.sum(axis=1)
    arguments = {"spacing": spacing, "split": split, "partitions": table.shape[1], "seed": seed, "bursts": bursts}
    whole, parts = build_schedule(counts, **arguments), list(schedule_chunks(counts, seed, **arguments))
    assert len(whole) == counts.sum()
    assert (np.diff(whole.offset_us) >= 0).all()
    assert ((whole.offset_us >= 0) & (whole.offset_us < len(counts) * SECOND_US)).all()
    assert np.concatenate([part.offset_us for part in parts]).tolist() == whole.offset_us.tolist()
    assert np.concatenate([part.partition for part in parts]).tolist() == whole.partition.tolist()
    if split is Split.TABLE:
        assert np.bincount(whole.partition, minlength=table.shape[1]).tolist() == table.sum(axis=0).tolist()


def test_a_period_drifts_evenly_from_the_start_to_the_end() -> None:
    bursts = Bursts(burst_period_s=0.7, burst_drift_s=0.6)
    schedule = build_schedule(
        np.full(600, 100), spacing=Spacing.BURST, split=Split.EVEN, partitions=1, seed=0, bursts=bursts
    )
    begin_s, sizes = np.unique(schedule.offset_us, return_counts=True)
    gaps_s = np.diff(begin_s / SECOND_US)
    assert gaps_s[[0, -1]] == pytest.approx([0.7, 1.3], abs=0.002)
    assert gaps_s[np.searchsorted(begin_s, 300 * SECOND_US)] == pytest.approx(1.0, abs=0.002)
    assert sizes[:-1] == pytest.approx(100 * gaps_s, abs=1), "each burst has the events of its own period"


def test_a_random_phase_follows_the_seed_and_jitter_stays_in_its_bounds() -> None:
    random = Bursts(burst_phase_s="random", burst_jitter_s=0.2)
    phases = {random.phase_s(seed) for seed in range(20)}
    assert len(phases) == 20
    assert max(phases) - min(phases) > 0.5
    begin_us = build_schedule(
        np.ones(50, np.int64), spacing=Spacing.BURST, split=Split.EVEN, partitions=1, seed=3, bursts=random
    ).offset_us[:-1]
    late_s = begin_us / SECOND_US - np.arange(49) - random.phase_s(3)
    assert late_s.min() >= -1e-6
    assert 0.15 < late_s.max() <= 0.2


@pytest.mark.parametrize(
    "values", [{"burst_phase_s": 1.0}, {"burst_period_s": 0.5, "burst_jitter_s": 0.6}, {"burst_period_s": 0.0}]
)
def test_bursts_that_would_overtake_each_other_are_refused(values) -> None:
    with pytest.raises(ValueError, match=f"{list(values)[-1]} = "):
        Bursts(**values)


def test_poisson_gaps_are_exponential() -> None:
    schedule = build_schedule(np.full(200, 100), spacing=Spacing.POISSON, split=Split.EVEN, partitions=1, seed=3)
    gaps_us = np.diff(schedule.offset_us)
    assert gaps_us.std() == pytest.approx(gaps_us.mean(), rel=0.05)
