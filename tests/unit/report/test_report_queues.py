"""The queues by running sums and maxima give the same times as a walk over the whole run."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from late_story import SERVICE_US, TERMS, Event, rows, stored

from report import seconds
from report.queues import SLOW_FACTOR, late_events
from report.rebalances import stays
from report.table import NONE
from report.terms import TypicalTimes

TYPICAL = TypicalTimes(service_us=SERVICE_US, transit_us=2_000)
FIGURES = ("start_us", "service_us", "unstalled_us", "unslowed_us", "since_us", "unpaused_us")
LONG_AGO = -(10**18)


def story(seed: int) -> list[Event]:
    """Twenty seconds of three replicas and six partitions: bursts, slow services, stalls, partitions that move."""
    chance = np.random.default_rng(seed)
    moves = {partition: sorted(chance.uniform(2, 18, 3)) for partition in range(6)}
    events = []
    for second in range(20):
        for partition in range(6):
            owner = f"payment-{(partition + int(np.searchsorted(moves[partition], second))) % 3}"
            stall = float(chance.uniform(0.2, 2.5)) if chance.random() < 0.08 else 0.0
            for at in second + np.sort(chance.uniform(0, 1, int(chance.integers(0, 12)))):
                slow = float(chance.uniform(0.05, 0.9)) if chance.random() < 0.02 else SERVICE_US / 1e6
                late = float(chance.exponential(0.02))
                events.append(
                    Event(float(at), partition, owner, placed=float(at) + late, service=slow,
                          received=max(float(at) + late + 0.002, second + stall))
                )  # fmt: skip
    return events


@dataclass
class Queue:
    """The state of the queue of one replica."""

    before: int | None = None
    unstalled: int = LONG_AGO
    unslowed: int = LONG_AGO
    since: int = LONG_AGO


@dataclass
class Line:
    """The state of the queue of one partition."""

    ahead: int | None = None
    unpaused: int = LONG_AGO


def walk(rows: list[Any]) -> dict[tuple[int, int], dict[str, int]]:
    """Return (partition, offset) → the times of each late event, from one walk over the whole run."""
    replicas: dict[str, Queue] = {}
    lines: dict[int, Line] = {}
    found = {}
    for row in sorted(rows, key=lambda row: (row["done_us"], row["partition"], row["offset"], row["intended_us"])):
        done, handed, ready = row["done_us"], min(row["placed_us"], row["done_us"]), row["received_us"]
        moved = row["came_us"] is not None and handed < row["came_us"]
        there = row["came_us"] if moved else handed
        figures = at_replica(replicas.setdefault(row["replica"], Queue()), done, min(ready, done), there)
        line = lines.setdefault(row["partition"], Line())
        there = min(there, done)
        took = done - min(there if line.ahead is None else max(there, line.ahead), done)
        line.unpaused = max(line.unpaused, max(handed, row["left_us"]) if moved else handed) + took
        line.ahead = done
        if done - row["intended_us"] > TERMS.target_us:
            found[(row["partition"], row["offset"])] = figures | {"unpaused_us": line.unpaused}
    return found


def at_replica(queue: Queue, done: int, ready: int, there: int) -> dict[str, int]:
    here = min(there + TYPICAL.transit_us, ready)
    before = here if queue.before is None else queue.before
    start = min(max(ready, before), done)
    service = done - start
    capped = TYPICAL.service_us if service > SLOW_FACTOR * TYPICAL.service_us else service
    queue.unstalled = max(queue.unstalled, here) + service
    queue.unslowed = max(queue.unslowed, start if start > before else here) + capped
    if here >= before:
        queue.since = max(queue.since, here)
    queue.before = done
    figures = (start, service, queue.unstalled, queue.unslowed, queue.since)
    return dict(zip(FIGURES[:5], figures, strict=True))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_running_sums_give_the_times_of_a_walk_over_the_run(seed: int) -> None:
    events = rows(story(seed))
    known = stays(seconds.served(seconds.cells(stored(events), TERMS)), {})
    found = late_events(stored(events), known, replace(TERMS, typical=TYPICAL))

    hands = {}
    for partition, replica, second, left_us, came_us in zip(
        *(known[name].tolist() for name in ("partition", "replica", "second", "left_us", "came_us")), strict=True
    ):
        changed = left_us != NONE
        hands[partition, known.name(replica), second] = (left_us, came_us) if changed else (None, None)
    for row in events:
        second = (row["done_us"] - TERMS.started_us) // 1_000_000
        row["left_us"], row["came_us"] = hands[row["partition"], row["replica"], second]
    expected = walk(events)
    keys = zip(found["partition"].tolist(), found["offset"].tolist(), strict=True)
    figures = zip(*(found[name].tolist() for name in FIGURES), strict=True)
    actual = {key: dict(zip(FIGURES, times, strict=True)) for key, times in zip(keys, figures, strict=True)}
    assert len(found["partition"]) == len(expected) > 20, "each late event once"
    assert sum(row["came_us"] is not None for row in events) > 50, "partitions moved"
    assert actual == expected
