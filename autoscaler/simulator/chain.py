"""Stages one behind the other: what leaves a stage arrives at the next one.

Nothing flows back, so a stage is simulated to its end before the one behind it begins: exact, and no engine knows of
another. A policy that is told what is known upstream takes it tick by tick (autoscaler.policies.chain).
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
    """Return what `run` sends to the stage behind it, and for each of these events which of the first stage caused it.

    Each event causes ⌊branching⌋ events when it is finished, and one more at random for the rest of it. Each of them
    goes to a random partition: topics are keyed by order, and a hash of orders is uniform.
    cause: of the events of `run`. The workload ends after the last event, when that is after the run's own end.
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
    """Return for each event of the first stage how long it took until all that it caused was finished, µs.

    causes: by stage and event, the event of the first stage that caused it.
    """
    first = runs[0].events
    done_us = first.done_us.copy()
    for run, cause in zip(runs[1:], causes[1:], strict=True):
        np.maximum.at(done_us, cause, run.events.done_us)
    return done_us - first.intended_us
