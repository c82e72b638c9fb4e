"""Whether an experiment counts."""

import time
from typing import Final

from bench.handover.outcome import Outcome
from tailpack.labs.generator import Sent
from tailpack.labs.lab import Setup

LATENESS_LIMIT_S: Final = 0.025
"""A generator whose p99 lateness exceeds this makes the run invalid."""


def outcome(setup: Setup, sent: Sent, *, problem: str, interrupted: bool, quick: bool, began_s: float) -> Outcome:
    """Return what an experiment says of itself.

    problem: the step that did not come to its end; empty for none. began_s: monotonic time.
    """
    late_s = sent.lateness_p99_us / 1e6
    if not problem and late_s > LATENESS_LIMIT_S:
        problem = f"the load was late: p99 {late_s:.3f} s, above {LATENESS_LIMIT_S} s; keep the machine quiet"
    return Outcome(
        runtime=setup.runtime.name,
        heartbeat_s=setup.heartbeat_s,
        replicas=setup.replicas,
        partitions=setup.partitions,
        rate=setup.rate,
        seed=setup.seed,
        quick=quick,
        lateness_p99_s=late_s,
        lateness_max_s=sent.lateness_max_us / 1e6,
        valid=not problem,
        problem=problem,
        interrupted=interrupted,
        wall_s=round(time.monotonic() - began_s, 2),
    )
