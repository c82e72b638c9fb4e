"""Tests of estimated service rates against known ones, with simulated service times."""

import numpy as np
import pytest

from autoscaler.estimation.service_rates import ServiceRates, WorkCounters


class Machine:
    """A replica whose n events take `draw(n)` seconds."""

    def __init__(self, name, draw):
        self.name = name
        self.draw = draw
        self.incarnation = "a"
        self.processed = 0
        self.busy_us = 0

    def serve(self, events):
        """Serve `events` more events; return the counters."""
        self.processed += events
        self.busy_us += round(1e6 * float(self.draw(events).sum())) if events else 0
        return WorkCounters(self.name, self.incarnation, self.processed, self.busy_us)


def steady(mean_s):
    return lambda n: np.full(n, mean_s)


def served(rates, machine, *, reports, events=20):
    for _ in range(reports + 1):
        rates.observe(machine.serve(events))


def test_random_variation_alone_makes_no_replica_differ():
    """100 groups of 5 equal replicas, each estimated 20 times."""
    rng = np.random.default_rng(7)
    different = 0
    for _ in range(100):
        rates = ServiceRates(200.0)
        machines = [Machine(f"payment-{ordinal}", lambda n: rng.exponential(0.005, n)) for ordinal in range(5)]
        for _ in range(20):
            for machine in machines:
                rates.observe(machine.serve(50))
            different += sum(rates.own_rate(machine.name) is not None for machine in machines)

    assert different <= 0.01 * 100 * 5 * 20


KINDS = {
    "deterministic": lambda rng, mean_s, n: np.full(n, mean_s),
    "exponential": lambda rng, mean_s, n: rng.exponential(mean_s, n),
    "fixed and a tail": lambda rng, mean_s, n: mean_s * (0.5 + rng.pareto(3.0, n)),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reports", [3, 40])
def test_the_confidence_interval_contains_the_true_rate_with_its_probability(kind, reports):
    """100 groups of 8 replicas whose speeds differ by 10 % (log-normal), with 20 events per report."""
    rng = np.random.default_rng(5)
    covered, widths = [], []
    for _ in range(100):
        rates, truth = ServiceRates(180.0), {}
        for ordinal in range(8):
            mean_s = 0.005 * rng.lognormal(0, 0.1)
            machine = Machine(f"payment-{ordinal}", lambda n, mean_s=mean_s: KINDS[kind](rng, mean_s, n))
            served(rates, machine, reports=reports)
            truth[machine.name] = 1 / mean_s
        for name, rate in truth.items():
            estimate = rates.estimate(name)
            covered.append(estimate.low <= rate <= estimate.high)
            widths.append((estimate.high - estimate.low) / estimate.value)

    assert np.mean(covered) >= 0.93, (
        "nominal 95 %; 800 replicas give at best ± 0.8 %, because their errors are correlated"
    )
    assert np.mean(widths) < (0.6 if reports == 3 else 0.17), "a useless interval would contain the true rate, too"
