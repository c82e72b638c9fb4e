"""Chains of simulated stages: the output of a stage is the input of the next.

No event flows upstream, so each stage is simulated to its end before the next one begins. This is exact. A policy that
uses reports from upstream reads them tick by tick (autoscaler.policies.chain).
"""

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.chance import Cause, chance_of
from autoscaler.simulator.run import Run

Numbers = NDArray[np.int64]


def next_workload(
    run: Run, cause: Numbers, *, branching: float, partitions: int, seed: int
) -> tuple[Workload, Numbers]:
    """Return the workload of the next stage, and for each of its events the event of the first stage that caused it.

    Each finished event causes ⌊branching⌋ events, and one more with probability branching − ⌊branching⌋. Each of them
    goes to a random partition: topics are keyed by order, and a hash of orders is uniform.
    cause: event of the first stage for each event of `run`. The workload ends with the run or its last event, if later.
    """
    chance = chance_of(Cause.CHAIN, seed)
    each = int(branching) + (chance.random(len(cause)) < branching - int(branching))
    events = np.repeat(np.arange(len(cause)), each)
    partition = chance.integers(partitions, size=len(events), dtype=np.int32)
    times_us = run.events.done_us[events]
    order = np.argsort(times_us, kind="stable")
    ends_s = max(run.duration_s, ceil((int(times_us.max(initial=0)) + 1) / 1e6))
    arrivals = Arrivals(times_us[order], partition[order])
    return Workload.whole(arrivals, partitions=partitions, duration_s=ends_s), cause[events[order]]


def end_to_end_us(runs: Sequence[Run], causes: Sequence[Numbers]) -> Numbers:
    """Return for each event of the first stage the time until all events that it caused were finished, µs.

    causes: for each stage and event, the event of the first stage that caused it.
    """
    first = runs[0].events
    done_us = first.done_us.copy()
    for run, cause in zip(runs[1:], causes[1:], strict=True):
        np.maximum.at(done_us, cause, run.events.done_us)
    return done_us - first.intended_us
