"""Rscore from plans and ticks, and how many seconds a series shows."""

import pytest

from contracts.journal import PartitionSeen, PlanWritten, TickRecord
from report.cost import rebalance_score
from report.seconds import DRAIN_SHOWN_S, shown_s


def plan(at_us: int, *owners: str) -> PlanWritten:
    return PlanWritten(
        at_us=at_us, epoch=at_us, action="reassign", reason="", replicas=tuple(sorted(set(owners))),
        assignment=dict(enumerate(owners)) if owners else None, moved=0,
    )  # fmt: skip


def tick(at_us: int, *rates: float) -> TickRecord:
    seen = (PartitionSeen(partition=k, arrival_rate=rate, lag=0, owner=None) for k, rate in enumerate(rates))
    return TickRecord(
        at_us=at_us, tick=0, policy="", action="hold", reason="", service_rate=200.0, partitions=tuple(seen),
        ready_replicas=0, requested_replicas=0, planned_replicas=0, epoch=0,
    )  # fmt: skip


def test_rscore_is_what_moved_in_replicas_per_plan() -> None:
    plans = [plan(0, "a", "a", "a"), plan(10, "a", "b", "b"), plan(20, "a", "b", "b")]
    pairs = list(zip([None, *plans], plans, strict=False))
    ticks = [tick(5, 10, 40, 60), tick(15, 99, 99, 99)]
    assert rebalance_score(pairs, ticks) == pytest.approx((0.5 + 0) / 2), "40 + 60 of 200 events/s moved once"


def test_the_series_shows_the_drain_but_no_absurd_time() -> None:
    assert shown_s(10.0, 0, 9_999_999) == 10
    assert shown_s(10.0, 0, 12_000_000) == 13
    assert shown_s(9.5, 0, None) == 10
    assert shown_s(10.0, 0, 10**18) == 10 + DRAIN_SHOWN_S
