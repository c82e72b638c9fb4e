"""Replica-minutes, start-up times and series from a journal."""

import pytest

from contracts.journal import PartitionState, ReplicaChange, ReplicaChanged, TickRecord
from report.history import lag_each_second, paid_spans, replica_minutes, startup_times_us

REQUESTED, READY, DRAINED = ReplicaChange.REQUESTED, ReplicaChange.READY, ReplicaChange.DRAINED
LEFT, DIED, ADOPTED = ReplicaChange.LEFT, ReplicaChange.DIED, ReplicaChange.ADOPTED


def at(second: float, replica: str, change: ReplicaChange) -> ReplicaChanged:
    return ReplicaChanged(at_us=int(second * 1e6), replica=replica, change=change)


@pytest.mark.parametrize(
    ("life", "minutes"),
    [
        ([at(10, "a", REQUESTED), at(13, "a", READY), at(38, "a", DRAINED), at(40, "a", LEFT)], 0.5),
        ([at(-5, "a", REQUESTED), at(-1, "a", LEFT)], 0.0),
        ([at(0, "a", REQUESTED), at(15, "a", DIED), at(45, "a", REQUESTED)], 0.5),
        ([at(0, "a", REQUESTED), at(20, "a", ADOPTED)], 1.0),
    ],
    ids=["until it has left", "before the run", "dead for a while", "adopted"],
)
def test_a_replica_costs_from_its_request_until_it_left_or_died(life: list[ReplicaChanged], minutes: float) -> None:
    assert replica_minutes(paid_spans(life), 0, 60_000_000) == minutes


def test_start_up_time_lasts_from_request_to_ready_and_failed_starts_do_not_count() -> None:
    first = [at(10, "a", REQUESTED), at(13, "a", READY), at(40, "a", LEFT)]
    again = [at(50, "a", REQUESTED), at(51, "a", DIED), at(52, "a", REQUESTED), at(54, "a", READY)]
    assert startup_times_us([*first, *again, at(0, "b", ADOPTED), at(60, "c", REQUESTED)]) == [3_000_000, 2_000_000]


def test_lag_is_unknown_if_no_tick_observed_it() -> None:
    def tick(second: float, *lags: int) -> TickRecord:
        seen = tuple(PartitionState(partition=p, arrival_rate=0.0, lag=lag, owner=None) for p, lag in enumerate(lags))
        return TickRecord(
            at_us=int(second * 1e6), tick=0, policy="static", action="no-change", reason="", service_rate=0.0,
            partitions=seen, ready_replicas=0, requested_replicas=0, planned_replicas=0, epoch=0,
        )  # fmt: skip

    assert lag_each_second([tick(0.1, 3, 4), tick(1.1), tick(2.1, 0, 0)], 0, 4) == (7, None, 0, None)
