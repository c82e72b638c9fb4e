"""Random scenarios: number k seeds the choice of a load curve and of all settings, so it is always the same."""

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
"""Scenarios from which the load curve is drawn."""
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
"""Setting → possible values, one of which is chosen with equal probability."""
MAX_PARTITION_LOAD: Final = 0.6
"""Largest share of a second, and of W for a burst, that the events of one partition may take."""
MIN_LOAD_REPLICAS: Final = 1.5
"""Smallest load of the busiest second, in replicas: below it, one replica serves everything."""


@cache
def random_case(number: int) -> Case:
    """Return random scenario `number`: one replica can serve any partition in time, but not all of them."""
    from bench.simulation.sent_events import build_events  # noqa: PLC0415  compiled code only where it is needed

    random = Random(number)
    while True:
        curve = random.choice(CURVES)
        settings = {key: random.choice(values) for key, values in SETTINGS.items()}
        if WORKLOADS[load_scenario(curve).load.workload].partitions:
            del settings["partitions"]  # the table of the workload has them
        if settings["spacing"] != "burst":
            del settings["burst_period_s"]
        case = Case(scenario=curve, set={**settings, "burst_phase_s": "random"})
        scenario = case.jobs(Contender(policy="tail-aware"), 1)[0][0].read_scenario()
        busy_s = build_events(scenario).table() * scenario.payment.service_time_s
        room_s = MAX_PARTITION_LOAD * min(1.0, scenario.target.latency_target_s)
        if busy_s.max() <= room_s and busy_s.sum(axis=1).max() >= MIN_LOAD_REPLICAS:
            return case
