from autoscaler.live.journal import LiveJournal, Metrics
from autoscaler.model import Action, Decision, GroupObservation, PartitionLoad, Plan, Replica
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.journal import (
    JournalEntry,
    PartitionSeen,
    PlanWritten,
    ReplicaChange,
    ReplicaChanged,
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


def test_a_decision_is_recorded_with_what_it_was_made_from() -> None:
    entries: list[JournalEntry] = []
    LiveJournal(entries.append, lambda: STATUS, "algorithm-2", stamp_us=same).record(OBSERVATION, DECISION)
    assert entries == [
        TickRecord(
            at_us=1_000_100_000,
            tick=1,
            policy="algorithm-2",
            action="up",
            reason="too much lag",
            service_rate=198.5,
            partitions=(
                PartitionSeen(partition=0, arrival_rate=40.0, lag=12, owner="payment-0"),
                PartitionSeen(partition=1, arrival_rate=60.0, lag=30, owner="payment-0"),
            ),
            ready_replicas=1,
            requested_replicas=1,
            planned_replicas=2,
            epoch=4,
        )
    ]


def test_a_hold_for_want_of_data_says_what_was_missing_and_guesses_nothing() -> None:
    entries: list[JournalEntry] = []
    journal = LiveJournal(entries.append, lambda: STATUS, "linear", stamp_us=same, clock=lambda: 1001.1)
    journal.record(OBSERVATION, DECISION)
    journal.record_hold(NotReadyError("end offset of payments.requested/1"))
    hold = entries[1]
    assert isinstance(hold, TickRecord)
    assert (hold.tick, hold.action, hold.missing) == (2, "hold", "end offset of payments.requested/1")
    assert hold.partitions == ()
    assert (hold.requested_replicas, hold.ready_replicas, hold.epoch) == (2, 1, 4)
    assert hold.at_us == 1_001_100_000


def test_metrics_follow_the_journal() -> None:
    metrics = Metrics()
    journal = LiveJournal(metrics.note, lambda: STATUS, "linear")
    journal.record(OBSERVATION, DECISION)
    journal.record_hold(NotReadyError("lag"))
    metrics.note(
        PlanWritten(at_us=1, epoch=5, action="up", reason="", replicas=("payment-0",), assignment=None, moved=0)
    )
    metrics.note(ReplicaChanged(at_us=1, replica="payment-0", change=ReplicaChange.START_FAILED))

    def value(name: str, **labels: str) -> float | None:
        return metrics.registry.get_sample_value(name, labels)

    assert value("tailpack_partition_lag_events", partition="1") == 30
    assert value("tailpack_partition_arrival_rate_events_per_second", partition="0") == 40
    assert value("tailpack_service_rate_events_per_second") == 198.5
    assert value("tailpack_replicas", state="requested") == 2
    assert value("tailpack_plan_epoch") == 5
    assert value("tailpack_decisions_total", action="up") == 1
    assert value("tailpack_holds_for_want_of_data_total") == 1
    assert value("tailpack_plans_total", action="up") == 1
    assert value("tailpack_replica_changes_total", change="start-failed") == 1
