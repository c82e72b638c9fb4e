"""KEDA's Kafka scaler and the HPA behind it, as timelines. μ·W = 100 events for each replica."""

from unit.autoscaler.policies.timelines import Obedient

from autoscaler.policies.keda_hpa import KedaHpa, KedaHpaSettings
from autoscaler.policies.settings import PolicySettings


def keda(**options):
    return KedaHpa(PolicySettings(), KedaHpaSettings(**options))


def group(*, replicas=1, obeys=True, **options):
    return Obedient(keda(**options), replicas=replicas, obeys=obeys)


def spread_out(total, partitions=20):
    """Return lags that sum to `total`."""
    return [total // partitions + (p < total % partitions) for p in range(partitions)]


SILENT = [0] * 20


def test_it_looks_every_15_seconds_and_not_in_between():
    held = group()

    assert held.at(0.1, SILENT, spread_out(50)).plan.count == 1
    assert held.during([second + 0.1 for second in range(1, 31)], SILENT, spread_out(300)) == [(15.1, 3)]
    assert (
        held.decision.reason
        == "lag of 300 events at 100 for each replica: 1.00 of the target for 3, within the " + ("tolerance: hold 3")
    )
    assert held.at(31.1, SILENT, spread_out(900)).reason == "the next sync is in 14 s: hold 3"


def test_lag_over_the_threshold_rounded_up():
    assert group().at(0, SILENT, spread_out(210)).plan.count == 3
    assert group(lag_threshold=5).at(0, SILENT, spread_out(9)).plan.count == 2
    assert group().at(0, SILENT, spread_out(210)).plan.assignment is None, "the group's assignor places partitions"


def test_down_only_to_the_most_wanted_in_five_minutes():
    held = group(replicas=6)

    held.at(0, SILENT, spread_out(600))
    assert held.at(15, SILENT, spread_out(450)).reason.endswith(
        "0.75 of the target for 6; 5 desired, but 6 by the stabilisation window: hold 6"
    )
    changes = held.during(range(16, 600), SILENT, spread_out(150))
    assert changes == [(300, 5), (315, 2)], "what was wanted at 0 s counts until 300 s, at 15 s until 315 s"


def test_up_at_once_but_at_most_double_or_four_more():
    assert group().at(0, SILENT, spread_out(1900)).plan.count == 5, "1 + 4"
    held = group(replicas=6)
    assert held.at(0, SILENT, spread_out(1900)).plan.count == 12, "6 doubled"
    assert held.at(14, SILENT, spread_out(1900)).plan.count == 12
    assert held.at(15, SILENT, spread_out(1900)).plan.count == 19
    assert held.decision.reason.endswith("1.58 of the target for 12: up 12 → 19")


def test_lag_is_capped_at_the_partitions():
    five = [0] * 5

    assert group().at(0, five, [200] * 5).plan.count == 5
    assert group(replicas=2).at(0, five, [118] * 5).plan.count == 6, "5.9 in whole numbers is 5: KEDA lets it pass"
