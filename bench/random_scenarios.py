"""Random scenarios. The number of a scenario is the seed with which its load curve and its settings are chosen."""

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
"""Scenarios whose load curves are used."""
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
"""Setting → its possible values, which are equally probable."""
MAX_PARTITION_LOAD: Final = 0.6
"""The events that one partition gets in a second may take at most this share of the second and of the target."""
MIN_LOAD_REPLICAS: Final = 1.5
"""Minimum load of the busiest second, in replicas. With less load, a single replica would be enough."""


@cache
def random_case(number: int) -> Case:
    """Return random scenario `number`. A replica can serve any single partition in time, but not all partitions."""
    from bench.simulation.sent_events import build_events  # noqa: PLC0415  compiled code only where it is needed

    random = Random(number)
    while True:
        curve = random.choice(CURVES)
        settings = {key: random.choice(values) for key, values in SETTINGS.items()}
        if WORKLOADS[load_scenario(curve).load.workload].partitions:
            del settings["partitions"]  # the workload defines them
        if settings["spacing"] != "burst":
            del settings["burst_period_s"]
        case = Case(scenario=curve, set={**settings, "burst_phase_s": "random"})
        scenario = case.jobs(Contender(policy="tail-aware"), 1)[0][0].read_scenario()
        busy_s = build_events(scenario).table() * scenario.payment.service_time_s
        room_s = MAX_PARTITION_LOAD * min(1.0, scenario.target.latency_target_s)
        if busy_s.max() <= room_s and busy_s.sum(axis=1).max() >= MIN_LOAD_REPLICAS:
            return case
