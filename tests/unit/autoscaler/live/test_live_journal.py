from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from autoscaler.live import journal
from autoscaler.live.journal import JournalTopic, LiveJournal
from autoscaler.live.metrics import Metrics
from autoscaler.live.troubles import Troubles
from autoscaler.model import Action, Decision, GroupObservation, PartitionLoad, Plan, Replica
from autoscaler.ports import NotReadyError
from autoscaler.records import GroupStatus
from contracts.connection import Connection
from contracts.journal import (
    JournalEntry,
    PartitionSeen,
    PlanWritten,
    ReplicaChange,
    ReplicaChanged,
    TickRecord,
    entries,
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
    found: list[JournalEntry] = []
    LiveJournal(found.append, lambda: STATUS, "algorithm-2", stamp_us=same).record(OBSERVATION, DECISION)
    assert found == [
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
    found: list[JournalEntry] = []
    journal = LiveJournal(found.append, lambda: STATUS, "linear", stamp_us=same, clock=lambda: 1001.1)
    journal.record(OBSERVATION, DECISION)
    journal.record_hold(NotReadyError("end offset of payments.requested/1"))
    hold = found[1]
    assert isinstance(hold, TickRecord)
    assert (hold.tick, hold.action, hold.missing) == (2, "hold", "end offset of payments.requested/1")
    assert hold.partitions == ()
    assert (hold.requested_replicas, hold.ready_replicas, hold.epoch) == (2, 1, 4)
    assert hold.at_us == 1_001_100_000


class FakeProducer:
    """Refuses with `trouble`; else tells of each delivery what `undelivered` says."""

    def __init__(self, _settings: dict[str, Any]) -> None:
        self.trouble: Exception | None = None
        self.undelivered: KafkaError | None = None
        self.stored: list[bytes] = []

    def produce(self, _topic: str, value: bytes, *, partition: int, on_delivery: Any) -> None:
        if self.trouble is not None:
            raise self.trouble
        if self.undelivered is None:
            self.stored.append(value)
        on_delivery(self.undelivered, None)

    def poll(self, _timeout_s: float) -> None: ...

    def flush(self, _timeout_s: float) -> int:
        return 0


@pytest.mark.parametrize(
    "trouble",
    [
        KafkaException(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE)),
        BufferError("Local: Queue full"),
        KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART),
    ],
)
def test_whatever_happens_to_the_journal_control_goes_on(
    monkeypatch: pytest.MonkeyPatch, trouble: Exception | KafkaError
) -> None:
    monkeypatch.setattr(journal, "Producer", FakeProducer)
    said: list[str] = []
    metrics = Metrics()
    topic = JournalTopic(
        Connection(bootstrap_servers="nowhere:1"), metrics, partial(Troubles(said.append).tell, "journal")
    )
    live = LiveJournal(topic.record, lambda: STATUS, "linear")
    producer: Any = topic._producer
    live.record(OBSERVATION, DECISION)
    producer.trouble, producer.undelivered = (trouble, None) if isinstance(trouble, Exception) else (None, trouble)
    for _ in range(3):
        live.record(OBSERVATION, DECISION)
    producer.trouble = producer.undelivered = None
    live.record(OBSERVATION, DECISION)
    assert [one.tick for one in entries(producer.stored) if isinstance(one, TickRecord) and one.partitions] == [1, 5]
    assert topic.close() == 3
    assert metrics.registry.get_sample_value("tailpack_journal_lost_total") == 3
    assert len(said) == 2
    assert said[0].startswith("journal: 1 records lost: ")
    assert said[1] == "journal: well again"


def test_few_decisions_about_many_partitions_are_kept_for_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "Producer", FakeProducer)
    monkeypatch.setattr(journal, "KEPT_PARTITIONS", 40)
    topic = JournalTopic(Connection(bootstrap_servers="nowhere:1"), Metrics(), lambda _: None)
    live = LiveJournal(topic.record, lambda: STATUS, "linear")
    many = tuple(PartitionLoad(number, 0.0, 0) for number in range(10))
    for _ in range(10):
        live.record(replace(OBSERVATION, partitions=many), DECISION)
    assert [one.tick for one in topic.recent] == [7, 8, 9, 10]


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
