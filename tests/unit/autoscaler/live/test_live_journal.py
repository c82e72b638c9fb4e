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


def test_a_hold_for_want_of_data_says_what_was_missing_and_guesses_nothing() -> None:
    found: list[JournalEntry] = []
    journal = LiveJournal(found.append, lambda: STATUS, "linear", Troubles(print), stamp_us=same, clock=lambda: 1001.1)
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
    live = LiveJournal(topic.record, lambda: STATUS, "linear", Troubles(print))
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
