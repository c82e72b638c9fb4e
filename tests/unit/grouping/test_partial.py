"""Sums of split keys, added up, are what one worker for each key would have had."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.events import Grouping
from grouping.partial import Partials, merged
from grouping.source import Source
from studies.grouping.compare import GROUPINGS
from studies.grouping.play import MERGED_EVERY_S, Arrivals, Stream, choices, play

EVENTS = st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(-(10**12), 10**12)), max_size=200)


@given(EVENTS, st.integers(1, 6), st.integers(1, 4), st.integers(1, 50))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_merged_sums_are_those_of_key_grouping(
    grouping: Grouping, events: list[tuple[str, int]], partitions: int, sources: int, window: int
) -> None:
    def windows(by: Grouping, of: int) -> list[dict[str, int]]:
        choosing = [Source(by, partitions, number=number) for number in range(of)]
        workers, found = [Partials() for _ in range(partitions)], []
        for begin in range(0, len(events), window):
            for number, (key, amount) in enumerate(events[begin : begin + window]):
                workers[choosing[number % of].choose(key)].add(key, amount)
            found.append(dict(merged(worker.told() for worker in workers)))
        return found

    found = windows(grouping, sources)
    assert found == windows(Grouping.KG, 1)
    every = Counter[str]()
    for key, amount in events:
        every[key] += amount
    assert merged(found) == every


@pytest.mark.parametrize("grouping", [one for one in GROUPINGS if one is not Grouping.CG])  # which hears of its workers
def test_the_study_counts_the_messages_that_partial_sums_take(grouping: Grouping) -> None:
    arrivals = Arrivals(Stream(events=20_000, skew=1.2, capacities=((1.0,) * 4,)))
    chosen = choices(grouping, 4, arrivals.hashes[arrivals.keys])
    by_window: dict[int, list[Partials]] = defaultdict(lambda: [Partials() for _ in range(4)])
    for key, worker, at_s in zip(arrivals.keys.tolist(), chosen.tolist(), arrivals.at_s.tolist(), strict=True):
        by_window[int(at_s / MERGED_EVERY_S)][worker].add(str(key))
    told = [[one.told() for one in workers] for workers in by_window.values()]
    messages = sum(len(one) for parts in told for one in parts)
    keys = sum(len(merged(parts)) for parts in told)
    assert len(told) > 1
    assert play(arrivals, grouping).partials == pytest.approx(messages / keys)
