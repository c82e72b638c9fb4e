"""Tests of the model of KEDA's Kafka scaler with an HPA, as timelines. μ·W = 100 events for each replica."""

from unit.autoscaler.policies.timelines import GroupTimeline

from autoscaler.model import Action
from autoscaler.policies.keda_hpa import KedaHpa, KedaHpaSettings
from autoscaler.policies.settings import PolicySettings


def group(*, replicas=1, **options):
    return GroupTimeline(KedaHpa(PolicySettings(), KedaHpaSettings(**options)), replicas=replicas)


def spread_out(total, partitions=20):
    """Return lags that sum to `total`."""
    return [total // partitions + (p < total % partitions) for p in range(partitions)]


SILENT = [0] * 20


def test_the_hpa_syncs_only_every_15_seconds():
    timeline = group()

    assert timeline.at(0.1, SILENT, spread_out(50)).plan.count == 1
    assert timeline.during([second + 0.1 for second in range(1, 31)], SILENT, spread_out(300)) == [(15.1, 3)]
    assert "1.00 of the target for 3, within the tolerance" in timeline.decision.reason
    assert "the next sync is in 14 s" in timeline.at(31.1, SILENT, spread_out(900)).reason


def test_scale_down_uses_the_maximum_desired_count_of_five_minutes():
    timeline = group(replicas=6)

    timeline.at(0, SILENT, spread_out(600))
    assert timeline.at(15, SILENT, spread_out(450)).action is Action.NO_CHANGE
    changes = timeline.during(range(16, 600), SILENT, spread_out(150))
    assert changes == [(300, 5), (315, 2)], "the count of 0 s counts until 300 s, that of 15 s until 315 s"


def test_scale_up_is_limited_to_double_or_four_more():
    assert group().at(0, SILENT, spread_out(1900)).plan.count == 5, "1 + 4"
    timeline = group(replicas=6)
    assert timeline.at(0, SILENT, spread_out(1900)).plan.count == 12, "double of 6"
    assert timeline.at(14, SILENT, spread_out(1900)).plan.count == 12
    assert timeline.at(15, SILENT, spread_out(1900)).plan.count == 19
    assert timeline.decision.reason.endswith("1.58 of the target for 12: up 12 → 19")
