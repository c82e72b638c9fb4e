"""Runs from a scenario to its figures. They are so short that the figures can be computed manually."""

import numpy as np
import pytest

from bench.scenario import load_scenario
from bench.simulation.run import run_scenario
from bench.simulation.sent_events import build_events
from loadgen.trace import Trace


def simulated(name, trace=None, **changes):
    scenario = load_scenario(name, changes)
    return run_scenario(scenario, build_events(scenario, trace), keep_events=False)[1]


def test_two_bursts_on_one_replica_by_hand() -> None:
    """Event number k of a burst waits for k others of 5 ms each: 80 events end after 5, 10, … 400 ms."""
    result = simulated("w1", Trace("mine.csv", np.array([80, 120])), policy="static")
    assert result.events == 200
    assert result.in_sla == (80 + 100) / 200
    assert (result.p50_s, result.max_s) == (0.25, 0.6)
    assert result.replica_minutes == 2 / 60
    assert result.packing_replica_minutes == (1 + 2) / 60
    assert result.regret is None, "nobody looked for the optimum"


def test_the_first_surge_lasts_twice_as_long_as_the_first_change_of_any_policy() -> None:
    """Second 2 needs two replicas. A tick, a start and a pause take 1 + 2 + 0.5 s, so the surge ends at 9 s."""
    times = {"policy": "static", "startup_s": 2.0, "rebalance_time_s": 0.5}
    in_the_surge, longer = ([80, 80, *([160] * seconds), 80] for seconds in (7, 8))
    lost, after = simulated("w1", Trace("mine.csv", np.array(in_the_surge)), **times), 80 / 80
    assert lost.in_sla < lost.in_sla_after_surge == after
    assert simulated("w1", Trace("mine.csv", np.array(longer)), **times).in_sla_after_surge == (100 + 80) / 240
    enough = simulated("w1", Trace("mine.csv", np.array(longer)), **times | {"policy": "static-2"})
    assert enough.in_sla_after_surge == enough.in_sla == 1, "there is no surge"


def test_the_references_of_the_paper_cost_what_it_prints() -> None:
    assert simulated("w1", policy="overprovisioned").replica_minutes == pytest.approx(50, abs=0.02)
    assert simulated("w1", policy="paper-optimal").replica_minutes == pytest.approx(32.72, abs=0.1)


def test_algorithm_2_is_near_the_packing_and_a_count_alone_is_late_under_skew() -> None:
    aware, counted = simulated("w1-skew9", policy="algorithm-2"), simulated("w1-skew9", policy="linear")
    assert aware.in_sla > 0.99
    assert aware.replica_minutes < 1.1 * aware.packing_replica_minutes
    assert counted.in_sla < 0.9


@pytest.mark.long
@pytest.mark.parametrize(
    "bursts",
    [{"burst_period_s": 1.1, "burst_phase_s": 0.3}, {"burst_phase_s": "random", "burst_jitter_s": 0.3, "seed": 3}],
    ids=str,
)
def test_the_slo_is_met_at_any_burst_phase(bursts: dict[str, object]) -> None:
    _, result = run_scenario(load_scenario("w1", {"autoscaler.policy": "tail-aware", **bursts}), keep_events=False)
    assert result.in_sla >= 0.999
