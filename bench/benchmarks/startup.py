"""How long a replica takes from its start until it reports that it is ready, as a process of this machine."""

from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from bench.benchmark import Benchmark, Row, Tools
from bench.benchmarks.handover import Handover
from bench.handover.group import ServedGroup
from contracts.clock import monotonic_s

STARTS: Final = 12
ENOUGH_S: Final = 20.0
"""No start begins later."""


@dataclass(kw_only=True)
class Startup(Benchmark):
    """Measure how long a replica takes from its start until it is ready."""

    def measure(self, case: str, tools: Tools) -> Row:
        """Start and stop one replica after the other; return seconds from the start."""
        setup, took, began_s = Handover(partitions=4), list[float](), monotonic_s()
        with tools.kafka("startup", setup.partitions) as connection, ExitStack() as stack:
            group = ServedGroup(setup, connection, stack)
            group.write_plan(dict.fromkeys(range(setup.partitions), "payment-0"), ("payment-0",))
            while not took or (len(took) < STARTS and monotonic_s() - began_s < ENOUGH_S):
                tools.announce(said=f"start {len(took) + 1} of {STARTS}")
                asked_s = monotonic_s()
                name = group.start_warm()
                took.append(monotonic_s() - asked_s)
                group.end(name)
                group.wait_for(partial(group.gone, name), f"{name} ends after SIGTERM")
        p50, p99 = np.percentile(took, (50, 99))
        return {"n": len(took), "asked_to_ready_p50_s": float(p50), "p99_s": float(p99)}
