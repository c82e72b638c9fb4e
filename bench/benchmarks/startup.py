"""Measure the time from the start of a replica, as a local process, until it reports ready."""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from bench.benchmark import Benchmark, Row, Tools
from bench.benchmarks.handover import Handover
from bench.handover.group import ServedGroup
from contracts.clock import monotonic_s

MAX_STARTS: Final = 12
LAST_START_S: Final = 20.0
"""Latest start of a replica, in seconds since the beginning of the benchmark."""


@dataclass(kw_only=True)
class Startup(Benchmark):
    """Measure the start-up time of a replica: from its start until it is ready."""

    def measure(self, case: str, tools: Tools) -> Row:
        """Start and stop one replica after the other; return the median and the p99 of their start-up times."""
        setup, times_s, began_s = Handover(partitions=4), list[float](), monotonic_s()
        with tools.kafka("startup", setup.partitions) as connection, ExitStack() as stack:
            group = ServedGroup(setup, connection, stack)
            group.write_plan(dict.fromkeys(range(setup.partitions), "payment-0"), ("payment-0",))
            while not times_s or (len(times_s) < MAX_STARTS and monotonic_s() - began_s < LAST_START_S):
                tools.announce(status=f"start {len(times_s) + 1} of {MAX_STARTS}")
                requested_s = monotonic_s()
                name = group.start_warm()
                times_s.append(monotonic_s() - requested_s)
                group.end(name)
                group.wait_for(partial(group.has_ended, name), f"{name} ends after SIGTERM")
        p50, p99 = np.percentile(times_s, (50, 99))
        return {"n": len(times_s), "asked_to_ready_p50_s": float(p50), "p99_s": float(p99)}
