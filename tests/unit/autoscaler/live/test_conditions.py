"""The conditions of /status: each has a status, a reason, and the time of its last change."""

from dataclasses import replace
from typing import Any

import msgspec
from unit.autoscaler.builders import Wants, seen

from autoscaler.live.conditions import REVERTED_US, Conditions, ScaleUps
from autoscaler.live.hold_reader import NOT_READ
from autoscaler.policies.guards.holds import Held
from contracts.holds import Direction, Hold
from contracts.journal import PartitionState, TickRecord
from contracts.settings import Target


def tick(**more: Any) -> TickRecord:
    return TickRecord(
        at_us=0, tick=1, policy="wants", action="no-change", reason="", service_rate=1.0,
        ready_replicas=2, requested_replicas=2, planned_replicas=2, epoch=1, **{"partitions": ()} | more,
    )  # fmt: skip


class Page:
    """The conditions, after one tick for each second."""

    def __init__(self, act: str = "on") -> None:
        self.values: dict[str, float] = {}
        self.at_s = 0
        self.of = Conditions(act, Target(percentile=0.9), self.values.__setitem__, lambda: self.at_s * 10**6)

    def after(self, record: TickRecord, *, late: int | None = 0, hold: Hold | None = None, **problems: str) -> Any:
        self.at_s += 1
        observation = seen([50, 50], replicas=1, at_s=self.at_s)
        self.of.observe(replace(observation, replicas=(replace(observation.replicas[0], late=late),)))
        self.of.update(record, hold, problems, leads=True)
        return {one.type: one for one in self.of.current}


def test_each_condition_has_a_reason_and_keeps_the_time_of_its_last_change() -> None:
    page = Page()
    first = page.after(tick())
    assert {kind: (one.status, one.reason) for kind, one in first.items()} == {
        "Observing": ("True", "Fresh"), "Acting": ("True", "On"), "Limited": ("False", "NoRail"),
        "Keeping": ("Unknown", "NotCounted"),
    }  # fmt: skip
    pause = Hold(at_us=0, direction=Direction.ALL, until_us=10**9, reason="a move")
    then = page.after(tick(rails=("max", "hold"), uncapped=9), hold=pause, offsets="cannot read partition 3")
    assert (then["Limited"].reason, then["Limited"].message) == ("hold", "wanted 9 replicas; 2 are planned")
    assert (then["Acting"].status, then["Observing"].reason) == ("False", "Stale")
    assert "a move" in then["Acting"].message
    assert page.values["Acting"] == page.values["Observing"] == 0
    again = page.after(tick(rails=("hold",), uncapped=8), hold=pause)
    assert again["Acting"].since == then["Acting"].since == "1970-01-01 00:00:02"
    assert again["Observing"].since == "1970-01-01 00:00:03"
    assert page.after(tick(missing="lag"))["Observing"].message == "lag"
    order = Hold(at_us=0, direction=Direction.OFF, until_us=10**9, reason="look first")
    off = Page("off").after(tick(), hold=order)["Acting"]
    assert (off.reason, "look first" in off.message) == ("Off", True)
    assert page.after(tick(), hold=msgspec.structs.replace(order, direction=Direction.ON))["Acting"].reason == "On"
    unread = page.after(tick(), holds=f"{NOT_READ}: not authorized")["Acting"]
    assert (unread.status, unread.reason) == ("False", "HoldUnknown")


def test_keeping_counts_the_late_events_of_the_last_hour() -> None:
    page = Page()
    for _ in range(11):
        kept = page.after(tick(), late=5)["Keeping"]
    assert kept.status == "True"
    assert kept.message == (
        "94.500% of 1,000 events of the last hour in time, target 0.9; 45% of the budget is left, burn rate 0.6"
    )
    assert page.after(tick(), late=200)["Keeping"].reason == "OverBudget"
    page.at_s += 3600
    assert page.after(tick(), late=0)["Keeping"].message.startswith("100.000%"), "older events are forgotten"


def scaled(capacity_of, *, arriving: float = 1000.0, reverts: bool = False) -> ScaleUps:
    """Return what is known after three scale-ups by one replica. capacity_of: replicas → events/s that they serve."""
    checked, lag, replicas = ScaleUps(reverts=reverts), 50_000.0 if arriving > 100 else 0.0, 1
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
    return checked


def test_only_scale_ups_against_another_limit_are_reported() -> None:
    assert scaled(lambda replicas: 100.0 * replicas).problem == ""
    assert scaled(lambda replicas: 100.0 + 50.0 * (replicas - 1)).problem == "", "half of it is no third"
    assert "the last 3 scale-ups" in scaled(lambda replicas: 100.0).problem, "a database that serves 100 events/s"
    assert scaled(lambda replicas: 100.0, arriving=90.0).problem == "", "no event waits: the load sets the throughput"


def test_with_the_rail_scale_ups_in_vain_are_reverted_for_a_time() -> None:
    assert scaled(lambda replicas: 100.0).restriction() is None, "it is off by default"
    checked = scaled(lambda replicas: 100.0, reverts=True)
    guard = Held(Wants(4), hold=checked.restriction, rail="revert_in_vain")
    reverted = guard.decide(seen([10] * 5, replicas=4))
    assert (reverted.plan.count, reverted.rails, reverted.uncapped) == (1, ("revert_in_vain",), 4)
    assert "reverted to 1: the last 3 scale-ups" in reverted.reason
    later = tick(partitions=(PartitionState(partition=0, arrival_rate=1.0, lag=0, owner="a"),))
    checked.observe(msgspec.structs.replace(later, at_us=100 * 10**6 + REVERTED_US))
    assert guard.decide(seen([10] * 5, replicas=1)).plan.count == 4, "the policy may try again"
    assert checked.problem == ""
