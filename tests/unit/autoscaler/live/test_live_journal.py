"""The journal of the live autoscaler."""

from autoscaler.live.journal import LiveJournal
from autoscaler.live.problems import Problems
from autoscaler.model import Action, Decision, GroupObservation, PartitionLoad, Plan, Replica
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.journal import (
    JournalEntry,
    TickRecord,
)

OBSERVATION = GroupObservation(
    at_s=1000.1,
    partitions=(PartitionLoad(0, 40.0, 12), PartitionLoad(1, 60.0, 30)),
    replicas=(Replica("payment-0", True),),
    assignment={0: "payment-0", 1: "payment-0"},
    service_rate=198.5,
    rebalance_time_s=0.05,
)
DECISION = Decision(Action.UP, Plan(("payment-0", "payment-1"), {0: "payment-0", 1: "payment-1"}), "too much lag")
STATUS = GroupStatus(requested_replicas=2, ready_replicas=1, planned_replicas=2, epoch=4, service_rate=198.5)


def same(at_s: float) -> int:
    return round(at_s * 1e6)


def test_a_tick_without_data_records_what_was_missing_and_no_loads() -> None:
    found: list[JournalEntry] = []
    journal = LiveJournal(found.append, lambda: STATUS, "linear", Problems(print), stamp_us=same, clock=lambda: 1001.1)
    journal.record(OBSERVATION, DECISION)
    journal.record_not_ready(NotReadyError("end offset of payments.requested/1"))
    hold = found[1]
    assert isinstance(hold, TickRecord)
    assert (hold.tick, hold.action, hold.missing) == (2, "no-change", "end offset of payments.requested/1")
    assert hold.partitions == ()
    assert (hold.requested_replicas, hold.ready_replicas, hold.epoch) == (2, 1, 4)
    assert hold.at_us == 1_001_100_000
