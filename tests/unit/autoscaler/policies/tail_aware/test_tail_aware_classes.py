"""Replicas of two classes, 100 and 250 events/s: which of them tail-aware asks for, and what that saves."""

import numpy as np
import pytest

from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings, PolicySettings
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from contracts.replica_classes import class_of, read_classes
from loadgen.schedule import Spacing, Split, schedule_chunks
from report.measures import in_sla_share, replica_minutes

SECONDS = 240
BOTH, SMALL, LARGE = "small 1 1, large 2.5 2.5", "small 1 1", "large 2.5 2.5"


def wave(partitions: int, peak: int, hot: int = 0) -> Workload:
    """A burst each second, up to `peak` events and down to ten again, evenly among partitions; `hot` more in one."""
    rates = 10 + (peak - 10) * (1 - np.cos(2 * np.pi * np.arange(SECONDS) / SECONDS)) / 2
    counts = np.ceil(rates[:, None] * np.ones(partitions) / partitions).astype(np.int64)
    counts[:, 0] += hot
    chunks = schedule_chunks(counts, 10**6, spacing=Spacing.BURST, split=Split.TABLE, partitions=partitions, seed=1)
    return Workload(partitions, float(SECONDS), [Arrivals(one.offset_us, one.partition) for one in chunks])


def run(workload: Workload, text: str) -> Run:
    classes = read_classes(text)
    policy = make_policy("tail-aware", PolicySettings(replica_classes=classes), GuardSettings())
    return simulate(workload, policy, SimulationSettings(service=ServiceSettings(service_time_s=0.01, classes=text)))


def price(found: Run) -> float:
    return replica_minutes(found.paid, 0, SECONDS)


def in_sla(found: Run) -> float:
    return in_sla_share(found.latency_us, 0.5)


def asked_for(found: Run) -> list[str]:
    """Classes of the replicas in the order of their requests."""
    return [class_of(name, read_classes(BOTH)).name for name in found.replica_names]


def test_a_choice_keeps_the_promise_for_less_than_large_ones_alone() -> None:
    workload = wave(6, 300)
    both, large = run(workload, BOTH), run(workload, LARGE)
    assert in_sla(both) >= 0.999
    assert price(both) < 0.97 * price(large)
    assert set(asked_for(both)) == {"small", "large"}


@pytest.mark.parametrize("partitions", [6, 20], ids=["exhaustive", "greedy"])
def test_a_partition_that_no_small_one_could_serve_gets_a_large_one_and_the_others_small_ones(partitions: int) -> None:
    workload = wave(partitions, 120, hot=70)  # a small one serves 50 of a burst within W
    small, large, both = (run(workload, text) for text in (SMALL, LARGE, BOTH))
    assert in_sla(small) < 0.95
    assert in_sla(both) >= 0.995
    assert price(both) < price(large)
    assert set(asked_for(both)) == {"small", "large"}


def test_after_the_wave_a_small_one_stands_in_for_the_large_ones() -> None:
    found = run(wave(6, 300), BOTH)
    at_the_end = found.plans[-1].replicas
    assert [class_of(name, read_classes(BOTH)).name for name in at_the_end] == ["small"]


def test_a_large_one_that_is_cheap_is_preferred_and_a_dear_one_is_not() -> None:
    workload = wave(6, 300)
    cheap, dear = (run(workload, f"small 1 1, large 2.5 {cost}") for cost in ("1.2", "5"))
    assert asked_for(cheap).count("small") < asked_for(dear).count("small")
    assert asked_for(dear).count("large") == 0
    assert min(in_sla(cheap), in_sla(dear)) >= 0.999


def test_where_all_are_alike_what_is_paid_is_what_is_requested() -> None:
    found = run(wave(6, 100), SMALL)
    assert found.paid == found.requested
