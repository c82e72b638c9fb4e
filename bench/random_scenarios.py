"""Random scenarios in which replicas take time to start. A scenario's number is the seed of its curve and settings.

Numbers 1 to 100 are for development. Those from 1001 to 1100 are for reports, and nothing is tuned on them.
"""

import re
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any, Final

from bench.matrix import Case, Contender

SETTINGS: Final[Mapping[str, tuple[Any, ...]]] = {
    "partitions": (3, 6, 9, 9, 12, 12, 24, 60),
    "service_time_s": (0.005, 0.005, 0.01, 0.02),
    "latency_target_s": (0.1, 0.25, 0.5, 1.0, 2.0, 5.0),
    "percentile": (0.99, 0.999, 0.999, 0.9999),
    "spacing": ("burst", "smooth", "poisson", "poisson"),
    "startup_s": (1.0, 2.0, 3.0, 5.0, 8.0, 15.0, 30.0, 45.0),
    "decision_interval_s": (1.0, 1.0, 2.0, 5.0, 10.0, 15.0),
    "pause_s": (0.02, 0.05, 0.2),
    "commit_age_s": (0.0, 0.0, 0.0, 1.0, 3.0),
    "distribution": ("deterministic", "deterministic", "exponential"),
    "key_skew": (0.0, 0.0, 0.8),
    "initial_replicas": (1, 1, 2, 3),
}
"""Setting → its possible values, which are equally probable."""
DELIVERIES: Final[tuple[dict[str, Any], ...]] = (
    *({}, {}, {}, {}),
    *({"rebalance_protocol": "eager", "rebalance_time_s": stop_s} for stop_s in (0.1, 1.0, 3.0)),
    {"runtime": "kip848", "heartbeat_s": 1.0},
    {"runtime": "cooperative-sticky", "heartbeat_s": 1.0, "rebalance_time_s": 0.5},
)
"""How a plan is carried out. Empty: our own incremental rebalances."""
CURVES: Final = (
    "low for CALM, to high in RAMP, high for BUSY, to low in RAMP",
    "low for 0, to high in RAMP, to low in RAMP",
    "low for CALM, high for BUSY",  # a job with a timetable
    ", ".join(["low for CALM, high for BUSY"] * 12),  # jobs without one
    ", ".join(["LEVEL for CALM"] * 12),
    "low for CALM, high for BUSY, to middle in 40, to low in 120",  # a crowd that goes slowly
)
"""Curves, which repeat. A value is drawn for each word in capitals."""
PEAK_REPLICAS: Final = (2.0, 9.0)
"""Range of the highest load."""
MAX_PARTITION_LOAD: Final = 0.6
"""The events that one partition gets in a second may take at most this share of the second (bursts: of W)."""
MAX_EVENTS: Final = 400_000


@cache
def random_case(number: int) -> Case:
    """Return random scenario `number`. A replica can serve any single partition in time, but not all partitions."""
    from bench.simulation.sent_events import build_events  # noqa: PLC0415  compiled code only where it is needed

    random = Random(number)
    while True:
        settings = {key: random.choice(values) for key, values in SETTINGS.items()}
        peak = random.uniform(*PEAK_REPLICAS)
        service_s, target_s = settings["service_time_s"], settings["latency_target_s"]
        settings |= random.choice(DELIVERIES) | {"workload": _curve(random, round(peak / service_s)), "duration_s": 600}
        if settings["key_skew"]:
            settings["partitioner"] = "kg"
        if 10 * service_s > target_s or peak >= settings["partitions"]:
            continue
        case = Case(scenario="step", set=settings | {"burst_phase_s": "random"}, label=f"random-{number}")
        events = build_events(case.jobs(Contender(policy="static"), 1)[0][0].read_scenario())
        room_s = min(1.0, target_s) if settings["spacing"] == "burst" else 1.0
        if events.table().max() * service_s <= MAX_PARTITION_LOAD * room_s and events.events <= MAX_EVENTS:
            return case


def _curve(random: Random, high: int) -> str:
    low = round(high / random.uniform(2, 12))
    words = {"low": low, "middle": (low + high) // 2, "high": high}
    drawn = {"CALM": (30, 180), "BUSY": (5, 90), "RAMP": (15, 150), "LEVEL": (low, high)}
    text = re.sub("[A-Z]+", lambda word: str(random.randint(*drawn[word[0]])), random.choice(CURVES))
    return re.sub("low|middle|high", lambda word: str(words[word[0]]), text)
