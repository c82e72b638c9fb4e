"""The autoscaler continues to decide, and keeps its own epochs, with any control records of others."""

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest
from extremes import extremes, full_plan, full_report
from live_worlds import ALL_ON_0, GroupWorld, started

from autoscaler.controller import Controller
from autoscaler.live import progress_reader
from autoscaler.live.composition import policy_config_of
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import Action
from contracts.connection import Connection
from contracts.fields import MAX_EPOCH_LEAD
from contracts.plan import PlanRecord, decode_plan
from contracts.validation import DECODE_ERRORS


class Topic(list[bytes]):
    """Stands in for the reader of one partition, and is its unread records."""

    is_at_end = bool

    def __init__(self, *_: object, **_settings: object) -> None: ...

    def read(self, _count: int, _timeout_s: float) -> list[SimpleNamespace]:
        return [SimpleNamespace(offset=0, value=self.pop(0)) for _ in range(len(self))]


def test_the_group_is_observed_and_decided_for_after_every_extreme_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress_reader, "RecordReader", Topic)
    world = started(2)
    reports = ProgressReader(Connection(bootstrap_servers="nowhere:1"), deadline_s=0.0, clock=world.clock)
    world.group._reports, reports.is_ours = reports, world.scaler.is_source_of
    topic, decisions = cast(Topic, reports._records), list[object]()
    journal = SimpleNamespace(record=lambda seen, decision: decisions.append(decision), record_not_ready=str)
    policy = policy_config_of(AutoscalerSettings(policy="tail-aware", state_dir="unused")).policy()
    controller = Controller(world.group, policy, journal)  # type: ignore[arg-type]
    pids = {name: world.launcher.newest(name).pid for name in world.scaler.instances}
    sound = [msgspec.json.encode(full_report(name, pid, f"life-{pid}", "payment")) for name, pid in pids.items()]
    records = [*extremes(full_report("payment-0", pids["payment-0"], f"life-{pids['payment-0']}", "payment"))]
    for record in records:
        topic[:] = [*sound, record]
        world.step(0.95)
        topic[:] = list(sound)
        controller.tick()
    assert len(decisions) == len(records)
    assert set(reports.poll()) == set(pids), "a report under another name is no replica of this autoscaler"
    assert world.log.epoch < len(records)


@pytest.mark.parametrize(("reported", "next_epoch"), [(7, 8), (1 + MAX_EPOCH_LEAD, 2 + MAX_EPOCH_LEAD), (10**7, 2)])
def test_a_replica_may_know_a_later_plan_but_none_that_is_impossible(reported: int, next_epoch: int) -> None:
    world = started(2)
    world.report("payment-0", epoch=reported, assigned_epoch=1)
    assert ("plans" in world.problems.current) == (next_epoch == 2)
    world.decide(Action.REASSIGN, ("payment-0", "payment-1"), ALL_ON_0)
    assert world.log.written[-1].epoch == next_epoch


def found(record: bytes) -> PlanRecord | None:
    try:
        return decode_plan(record, None, "payment")
    except DECODE_ERRORS:
        return None


PLAN = full_plan("payment", "payments.requested", 7)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"replicas": tuple(f"payment-{number}" for number in range(300))},
            "did not fit 4 partitions and 4 replicas",
        ),
        (
            {"assignment": {0: "payment-0", 1: "payment-9", 99: "payment-1"}},
            "did not fit 4 partitions and 4 replicas",
        ),
        ({"replicas": ("payment-0",) * 3}, "did not fit 4 partitions and 4 replicas"),
        ({"assignment": None}, "stays in force"),
    ],
)
def test_a_plan_found_at_the_start_is_repaired_with_its_reason(changes: dict[str, object], words: str) -> None:
    world = GroupWorld(msgspec.structs.replace(PLAN, **changes))
    world.group.start(("payment-0",))
    intent = world.group._publisher.intent
    assert intent is not None
    assert intent.reason.startswith(f"plan 7 {words}")
    owners = intent.plan.assignment
    assert owners is None or (set(owners) == set(range(4)) and set(owners.values()) <= set(intent.plan.replicas))


def test_every_extreme_plan_found_at_the_start_leads_to_a_complete_plan() -> None:
    plans = [plan for record in extremes(PLAN) if (plan := found(record)) is not None]
    assert len(plans) > 30
    for plan in plans:
        world = GroupWorld(plan)
        world.group.start(("payment-0",))
        names = world.scaler.requested
        assert 1 <= len(names) <= 4
        for name in names:
            world.report(name, epoch=plan.epoch)
        assert world.group.observe().assignment.keys() >= set(range(4))
