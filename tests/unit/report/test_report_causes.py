"""Invented runs with known causes of late events: one run for each cause."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from late_story import TERMS, Event, burst, changed, planned, quiet, rows, stored

from contracts.journal import JournalEntry, ReplicaChange
from report import lateness, seconds
from report.causes import Cause
from report.history import Journal
from report.lateness import explain
from report.rebalances import Deaths, stays
from report.result import Tail
from report.terms import typical

REQUESTED, READY, DIED = ReplicaChange.REQUESTED, ReplicaChange.READY, ReplicaChange.DIED


SENT_LATE, NOT_RECEIVED, SLOW, DEAD, RETURNED, EVICTED, MOVED, BURST, START, SUCCESSOR, FLOOD, LOST = range(12)
"""Partitions with one story each. Partition k belongs to payment-k."""


def explained(events: Sequence[Event], *journal: JournalEntry, pipeline: bool = False) -> Tail:
    known = stored(rows(events))
    cells = seconds.cells(known, TERMS)
    entries = Journal(journal)
    deaths, event_counts = Deaths(entries), seconds.event_counts(cells)
    terms = replace(TERMS, pipeline=pipeline, typical=typical(known, TERMS))
    owners = stays(seconds.served(cells), deaths.times)
    return explain(known, owners, seconds.owned_arrivals(cells), terms, entries, deaths=deaths, totals=event_counts)


def left_alone(partition: int, from_s: float, until_s: float, **values: Any) -> list[Event]:
    """Return ten events per second that no replica receives before `until_s`."""
    steps = range(round((until_s - from_s) * 10))
    return [replace(Event(from_s + k / 10, partition, received=until_s), **values) for k in steps]


@pytest.fixture(scope="module")
def found() -> Tail:
    """Twenty seconds in which each partition has another problem."""
    owners = [f"payment-{partition}" for partition in range(12)]
    moved_owners = [*owners[:MOVED], "payment-9", *owners[MOVED + 1 :]]
    successor = {"replica": f"payment-{SUCCESSOR}"}
    events = [event for partition in (SENT_LATE, SLOW, BURST, START, SUCCESSOR, LOST) for event in quiet(partition)]
    events += [Event(10.03, SENT_LATE, placed=10.63)]
    events += [*quiet(NOT_RECEIVED, skip=(10.0, 10.7)), *left_alone(NOT_RECEIVED, 10.0, 10.7)]
    events += [Event(10.03, SLOW, service=0.8)]
    events += [*quiet(DEAD, until=10), *left_alone(DEAD, 10, 11, **successor)]
    events += [*quiet(RETURNED, skip=(10, 11)), *left_alone(RETURNED, 10, 11)]
    events += [*quiet(EVICTED, until=13), *left_alone(EVICTED, 13, 14, **successor)]
    events += [*quiet(MOVED, until=16), *left_alone(MOVED, 16, 16.8, **successor, epoch=2)]
    events += [*burst(10.05, 150, BURST), *burst(3.05, 150, START)]
    events += [*quiet(FLOOD, until=5), *(Event(5 + k / 250, FLOOD) for k in range(2500))]
    events += [Event(5.05, LOST, lost=True), Event(18.05, LOST, lost=True)]
    return explained(
        events,
        planned(-1, 1, owners),
        changed(2.5, "payment-12", REQUESTED),
        changed(5.0, "payment-12", READY),
        changed(10.02, "payment-3", DIED),
        changed(10.0, "payment-4", DIED),
        changed(10.9, "payment-4", READY),
        planned(15.99, 2, moved_owners),
    )


def of(found: Tail, partition: int) -> dict[str, int]:
    """Return cause → late events of one partition."""
    events: Counter[str] = Counter()
    for episode in found.episodes:
        if episode.partition == partition:
            events[episode.cause] += episode.events
    return dict(events)


def why(found: Tail, partition: int) -> str:
    return [episode.why for episode in found.episodes if episode.partition == partition][-1]


STORIES = {
    "sent late": (SENT_LATE, Cause.GENERATOR, 1, "The generator sent the worst event 600 ms late."),
    "received late by an idle replica": (NOT_RECEIVED, Cause.UPSTREAM, 3, "Payment-1 (epoch 1) was idle"),
    "a slow service and the events behind it": (
        SLOW,
        Cause.DOWNSTREAM,
        5,
        "The service of the worst event took 800 ms",
    ),
    "a dead replica": (DEAD, Cause.REPLICA_DEAD, 6, "Payment-3 was gone and payment-9 (epoch 1) took over"),
    "a replica that died and returned under its name": (RETURNED, Cause.REPLICA_DEAD, 6, ""),
    "an eviction: no plan names the new owner": (EVICTED, Cause.REPLICA_DEAD, 6, ""),
    "handed over slowly": (MOVED, Cause.HANDOVER, 4, "Partition 6 moved from payment-6 to payment-9 (epoch 2)"),
}


@pytest.mark.parametrize(("partition", "cause", "late", "text"), STORIES.values(), ids=STORIES)
def test_a_partition_gets_the_cause_of_its_story(
    found: Tail, partition: int, cause: Cause, late: int, text: str
) -> None:
    assert of(found, partition) == {cause: late}
    assert why(found, partition).startswith(text)


def test_an_episode_names_replica_plan_and_time_span(found: Tail) -> None:
    (episode,) = [episode for episode in found.episodes if episode.partition == MOVED]
    assert (episode.replica, episode.epoch, episode.from_s, episode.until_s) == ("payment-9", 2, 16.0, 16.3)
    assert "to 16.8 s (773 ms)" in episode.why
    assert "to 11.0 s (1.00 s)" in why(found, DEAD)


def test_a_peak_above_what_the_replica_serves_in_time_is_a_burst(found: Tail) -> None:
    causes = of(found, BURST)
    assert set(causes) == {Cause.BURST}
    assert causes[Cause.BURST] in range(48, 60), "99 of 150 are served in time, and some behind them are late"
    assert "(μ) of 200 events/s" in why(found, BURST)


def test_a_burst_during_the_start_of_a_replica_is_blamed_on_the_start(found: Tail) -> None:
    assert set(of(found, START)) == {Cause.REPLICA_STARTING}
    assert why(found, START).startswith("Payment-12 was requested at 2.5 s and ready 2.50 s later")


def test_a_load_above_capacity_for_longer_than_a_burst_is_overload(found: Tail) -> None:
    assert set(of(found, FLOOD)) == {Cause.OVERLOADED}
    assert "events/s over 10 s at payment-10 (epoch 1) against a service rate (μ) of 200 events/s" in why(found, FLOOD)
    assert "since" in why(found, FLOOD)


def test_an_event_that_was_never_completed_is_late_and_has_a_cause(found: Tail) -> None:
    assert of(found, LOST) == {Cause.REPLICA_DEAD: 1, Cause.OVERLOADED: 1}, "a replica died after the first of them"
    assert {episode.worst_s for episode in found.episodes if episode.partition == LOST} == {None}
    assert "no replica completed it" in why(found, LOST)


def test_an_event_that_order_delayed_is_upstream() -> None:
    events = [replace(event, accepted=event.at + 0.003) for event in (*quiet(0), *quiet(1))]
    found = explained([*events, Event(10.03, accepted=10.63)], pipeline=True)
    assert of(found, 0) == {Cause.UPSTREAM: 1}
    assert "Order accepted the worst event 600 ms after it was placed" in why(found, 0)


def stopped() -> list[Event]:
    """Return events of which none is received from 10 s until 10.8 s."""
    calm = [*quiet(0, skip=(10, 10.8)), *quiet(1, skip=(10, 10.8))]
    return [*calm, *left_alone(0, 10, 10.8), *left_alone(1, 10, 10.8)]


def test_a_rebalance_that_stops_all_replicas_is_group_stopped() -> None:
    found = explained(stopped(), planned(9.95, 2, ["payment-0", "payment-1"]))
    assert of(found, 0) == of(found, 1) == {Cause.GROUP_STOPPED: 4}
    assert "No partition completed an event for 798 ms" in why(found, 0)


def test_a_standstill_without_a_change_of_the_group_is_upstream() -> None:
    found = explained(stopped())
    assert of(found, 0) == of(found, 1) == {Cause.UPSTREAM: 4}


def test_of_too_many_late_events_a_sample_gets_causes(monkeypatch: pytest.MonkeyPatch) -> None:
    complete = explained([*quiet(0), *burst(10.05, 400)])
    monkeypatch.setattr(lateness, "MAX_EXPLAINED", 100)
    found = explained([*quiet(0), *burst(10.05, 400)])
    assert (complete.explained, found.late) == (None, complete.late)
    assert found.explained is not None
    assert 50 < found.explained <= 100
    assert sum(cause.events for cause in found.causes) == found.explained


@pytest.mark.parametrize("seed", [1, 2])
def test_causes_are_exhaustive_and_exclusive(seed: int) -> None:
    """In random runs each late event has one cause, and is in one episode and in one second."""
    chance = np.random.default_rng(seed)
    events = [
        Event(
            float(at),
            int(chance.integers(3)),
            replica=f"payment-{chance.integers(4)}",
            placed=float(at + chance.exponential(0.2)),
            received=float(at + chance.exponential(1.0) - 0.1),
            done=float(at + chance.exponential(1.0) + 0.1),
            epoch=int(chance.integers(5)),
            lost=bool(chance.random() < 0.1),
            columns={"received_us": None} if chance.random() < 0.1 else {},
        )
        for at in chance.uniform(-1, 19, 200)
    ]
    events += [Event(5.0, columns={"done_us": 9_000_000_000_000_000}), Event(5.0, columns={"intended_us": 0})]
    plans = [planned(float(k), k, [f"payment-{owner}" for owner in chance.integers(4, size=3)]) for k in range(1, 15)]
    gone = [changed(6.0, "payment-1", DIED), changed(3.0, "payment-3", REQUESTED)]

    found = explained(events, *plans, *gone)

    late = sum((row.get("done_us") or 10**17) - row["intended_us"] > TERMS.target_us for row in rows(events))
    assert found.late == late == sum(cause.events for cause in found.causes)
    assert sum(episode.events for episode in found.episodes) == late, "fewer episodes than are listed"
    assert found.episodes_left_out == 0
    assert sum(map(sum, found.by_second.values())) == late
    by_episode: Counter[str] = Counter()
    for episode in found.episodes:
        by_episode[episode.cause] += episode.events
    assert by_episode == {cause.cause: cause.events for cause in found.causes}
    assert set(by_episode) <= set(Cause)
    assert msgspec.json.decode(msgspec.json.encode(found), type=Tail) == found
