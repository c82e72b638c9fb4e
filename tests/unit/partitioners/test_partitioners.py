"""Partitioners have their documented properties and choose the same, interpreted (Order) and compiled (lab)."""

from collections import Counter, defaultdict
from zlib import crc32

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.jit import compiled
from partitioners import Partitioner
from partitioners.rules import BUSY, CG, HELPERS, IDLE, MOVE_COUNT, choose, record_signal
from partitioners.source import RULES, Source, new_state
from tailpack.lab.queues import array_state, play

EVENTS = 20_000
PARTITIONERS = tuple(kind for kind in Partitioner if kind is not Partitioner.EXPLICIT)


def _choose_all(rule: int, state, hashes, chosen) -> None:  # type: ignore[no-untyped-def]  # arrays of the compiler
    for number in range(len(hashes)):
        chosen[number] = choose(rule, 0.01, state, hashes[number])


COMPILED = compiled(_choose_all, HELPERS)


def stream(skew: float = 1.2, seed: int = 3) -> list[str]:
    """Return the keys of events, by Zipf's law."""
    weights = 1 / np.arange(1, 10_001) ** skew
    drawn = np.random.default_rng(seed).choice(len(weights), EVENTS, p=weights / weights.sum())
    return [f"k{key}" for key in drawn]


def place(partitioner: Partitioner, keys: list[str], partitions: int = 9) -> tuple[Counter[int], dict[str, set[int]]]:
    """Return the events of each partition and the partitions of each key."""
    source, loads, of_key = Source(partitioner, partitions), Counter(), defaultdict(set)
    for key in keys:
        at = source.choose(key)
        loads[at] += 1
        of_key[key].add(at)
    return loads, of_key


@pytest.mark.parametrize("partitioner", PARTITIONERS)
@pytest.mark.parametrize("workers", [1, 2, 9])
def test_interpreted_and_compiled_choices_are_the_same(partitioner: Partitioner, workers: int) -> None:
    hashes = np.array([crc32(key.encode()) for key in stream()], dtype=np.int64)
    state = new_state(partitioner, workers)
    interpreted = [choose(RULES[partitioner], 0.01, state, key) for key in hashes.tolist()]
    chosen = np.zeros(len(hashes), dtype=np.int64)
    COMPILED(RULES[partitioner], array_state(partitioner, workers), hashes, chosen)
    assert interpreted == chosen.tolist()
    assert set(interpreted) <= set(range(workers))


def test_only_key_grouping_keeps_the_events_of_a_key_in_one_partition() -> None:
    keys = stream()
    for partitioner in PARTITIONERS:
        split = any(len(partitions) > 1 for partitions in place(partitioner, keys)[1].values())
        assert split != partitioner.keeps_key_order, partitioner
    assert not Partitioner.EXPLICIT.keeps_key_order


@pytest.mark.parametrize(
    "partitioner", [Partitioner.PORC, Partitioner.CH, Partitioner.POTC, Partitioner.SG, Partitioner.STICKY_SPLIT]
)
@pytest.mark.parametrize("skew", [0.4, 1.2, 2.0])
def test_loads_stay_even_at_any_skew(partitioner: Partitioner, skew: float) -> None:
    loads, _ = place(partitioner, stream(skew))
    tolerance = 1.08 if partitioner is Partitioner.STICKY_SPLIT else 1.04  # most keys stay at home
    assert max(loads.values()) <= tolerance * EVENTS / 9 + 1


def test_partitions_of_a_key_differ_by_partitioner_as_documented() -> None:
    keys = stream(1.0)
    distinct = len(set(keys))
    memory = {
        partitioner: sum(map(len, place(partitioner, keys)[1].values())) / distinct
        for partitioner in PARTITIONERS
    }  # fmt: skip
    assert memory[Partitioner.KG] == 1 < memory[Partitioner.STICKY_SPLIT] < 1.05
    assert (
        memory[Partitioner.STICKY_SPLIT]
        < min(memory[Partitioner.PKG], memory[Partitioner.PORC])
        < memory[Partitioner.POTC]
    )
    assert max(map(len, place(Partitioner.PKG, keys)[1].values())) == 2


def test_sticky_split_splits_only_hot_keys_and_ends_the_split_afterwards() -> None:
    source = Source(Partitioner.STICKY_SPLIT, 8)
    mixed_in = [f"k{number % 4000}" for number in range(8000)]
    hot = [source.choose("hot" if number % 2 else key) for number, key in enumerate(mixed_in)]
    assert set(hot[1::2]) == set(range(8)), "half of all events need every partition"
    calm = [f"k{number % 4000}" for number in range(200_000)]
    homes = {key: crc32(key.encode()) % 8 for key in calm[:4000]}
    assert [source.choose(key) for key in calm][-4000:] == [homes[key] for key in calm[-4000:]]
    assert {source.choose("hot") for _ in range(15)} == {crc32(b"hot") % 8}, "the key is not hot any more"


def test_a_virtual_worker_moves_from_a_busy_to_an_idle_worker() -> None:
    state = new_state(Partitioner.CG, 3, virtual=2)
    before = [choose(CG, 0.01, state, key * 7919) for key in range(600)]
    record_signal(state, 0, BUSY)
    assert state.owner == [0, 1, 2, 0, 1, 2], "no worker is idle"
    record_signal(state, 2, IDLE)
    assert sorted(state.owner) == [0, 1, 1, 2, 2, 2]
    after = [choose(CG, 0.01, state, key * 7919) for key in range(600)]
    assert Counter(before)[0] == pytest.approx(200, abs=15)
    assert Counter(after)[0] == pytest.approx(100, abs=15)
    record_signal(state, 0, BUSY)
    record_signal(state, 1, IDLE)
    assert Counter(state.owner)[0] == 1, "a busy worker keeps its last virtual worker"
    assert state.numbers[MOVE_COUNT] == 1


def test_the_worker_that_is_busy_longest_is_relieved_first() -> None:
    state = new_state(Partitioner.CG, 3, virtual=2)
    for busy in (1, 0):
        record_signal(state, busy, BUSY)
        choose(CG, 0.01, state, 5)
    record_signal(state, 2, IDLE)
    assert Counter(state.owner) == {0: 2, 1: 1, 2: 3}


@given(st.lists(st.text(max_size=8), max_size=60), st.integers(1, 12), st.sampled_from(PARTITIONERS))
@settings(max_examples=60, deadline=None)
def test_any_key_gets_a_partition(keys: list[str], partitions: int, partitioner: Partitioner) -> None:
    source = Source(partitioner, partitions, number=5)
    for number, key in enumerate(keys):
        at = source.choose(key)
        assert 0 <= at < partitions
        source.record_wait(at, number % 3, 3.0 * number, busy_s=1.5, idle_s=0.5)


def test_only_consistent_grouping_balances_unequal_workers() -> None:
    unequal = (1.0,) * 8 + (3.0, 5.0)
    results = {kind: play(kind, events=400_000, skew=1.0, capacities=unequal)["imbalance"] for kind in PARTITIONERS}
    assert results.pop(Partitioner.CG) < 0.02 < min(results.values())
