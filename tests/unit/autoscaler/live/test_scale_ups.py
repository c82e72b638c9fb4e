"""A scale-up that brought less than a third of what was expected, twice, is reported."""

from autoscaler.live.scale_ups import ScaleUps
from contracts.journal import PartitionState, TickRecord


def after(capacity_of, *, arriving: float = 1000.0) -> str:
    """Return the problem after three scale-ups by one replica. capacity_of: replicas → events/s that they serve."""
    checked, lag, replicas = ScaleUps(), 50_000.0 if arriving > 100 else 0.0, 1
    for second in range(100):
        lag = max(0.0, lag + arriving - capacity_of(replicas))
        up = second in (20, 40, 60)
        checked.observe(
            TickRecord(
                at_us=second * 10**6, tick=second, policy="", action="up" if up else "no-change", reason="", epoch=1,
                service_rate=100.0, ready_replicas=replicas, requested_replicas=replicas,
                planned_replicas=replicas + up,
                partitions=(PartitionState(partition=0, arrival_rate=arriving, lag=round(lag), owner="a"),),
            )
        )  # fmt: skip
        replicas += up
    return checked.problem


def test_only_scale_ups_against_another_limit_are_reported() -> None:
    assert after(lambda replicas: 100.0 * replicas) == ""
    assert after(lambda replicas: 100.0 + 50.0 * (replicas - 1)) == "", "half of it is no third"
    assert "the last 3 scale-ups" in after(lambda replicas: 100.0), "a database that serves 100 events/s"
    assert after(lambda replicas: 100.0, arriving=90.0) == "", "no event waits: the load sets the throughput"
