"""Random scenarios: number k draws a load curve and all settings, and is the same whenever it is asked for."""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any, Final

from bench.matrix import Case, Contender
from bench.scenario import load_scenario
from loadgen.workloads import WORKLOADS

CURVES: Final = (
    *("w1", "w3", "w4", "w1-skew9", "hot-key", "step", "ramp", "sine", "spike", "silence"),
    *("flash-crowd", "square-30", "square-5", "sawtooth", "zero-then-load"),
)
"""Scenarios whose load curve may be drawn."""
SETTINGS: Final[Mapping[str, tuple[Any, ...]]] = {
    "partitions": (5, 9, 12, 20),
    "service_time_s": (0.001, 0.002, 0.005, 0.01, 0.02, 0.05),
    "latency_target_s": (0.25, 0.5, 1.0, 2.0),
    "spacing": ("burst", "smooth", "poisson"),
    "burst_period_s": (0.5, 0.8, 1.0, 1.3),
    "decision_interval_s": (0.5, 1.0, 2.0),
    "startup_s": (0.0, 1.0, 2.0, 4.0, 8.0),
    "pause_s": (0.02, 0.05, 0.1),
    "distribution": ("deterministic", "exponential"),
}
"""Settings that are drawn, each value with equal probability."""
MAX_PARTITION_LOAD: Final = 0.6
"""Most of a second, and of W for a burst, that the events of one partition may take."""
MIN_LOAD_REPLICAS: Final = 1.5
"""Load of the busiest second, in replicas: where one replica serves everything, there is nothing to decide."""


@cache
def random_case(number: int) -> Case:
    """Draw until one replica can serve each partition in time, and no replica can serve all of them."""
    from bench.simulation.sent_events import build_events  # noqa: PLC0415  compiled code only where it is needed

    random = Random(number)
    while True:
        curve = random.choice(CURVES)
        told = {key: random.choice(values) for key, values in SETTINGS.items()}
        if WORKLOADS[load_scenario(curve).load.workload].partitions:
            del told["partitions"]  # the workload has a table of partitions
        if told["spacing"] != "burst":
            del told["burst_period_s"]
        case = Case(scenario=curve, set={**told, "burst_phase_s": "random"})
        asked = case.jobs(Contender(policy="tail-aware"), 1)[0][0].read_scenario()
        busy_s = build_events(asked).table() * asked.payment.service_time_s
        room_s = MAX_PARTITION_LOAD * min(1.0, asked.target.latency_target_s)
        if busy_s.max() <= room_s and busy_s.sum(axis=1).max() >= MIN_LOAD_REPLICAS:
            return case
