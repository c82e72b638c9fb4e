"""If brokers reject a plan, the plan log never reports a plan that they do not have."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from autoscaler.live import plan_log
from autoscaler.live.plan_log import FencedError, PlanLog, PlanNotWrittenError
from contracts.connection import Connection


def refused(code: int, *, fatal: bool = False, abort: bool = False) -> KafkaException:
    return KafkaException(KafkaError(code, "refused", fatal, False, abort))


class FakeProducer:
    """Transactions like those of librdkafka: the commit delivers reports, and an empty commit succeeds."""

    def __init__(self, _settings: dict[str, Any]) -> None:
        self.calls: list[str] = []
        self.failures: dict[str, list[Exception]] = {}
        self.undelivered = False
        self._reports: list[Callable[[KafkaError | None, object], None]] = []

    def init_transactions(self, _deadline_s: float) -> None:
        self._step("init")

    def begin_transaction(self) -> None:
        self._step("begin")

    def produce(self, _topic: str, _value: bytes, *, on_delivery: Any, **_more: Any) -> None:
        self._step("produce")
        self._reports.append(on_delivery)

    def commit_transaction(self, _deadline_s: float) -> None:
        self._step("commit")
        for on_delivery in self._reports:
            on_delivery(KafkaError(KafkaError._MSG_TIMED_OUT) if self.undelivered else None, None)
        self._reports.clear()

    def abort_transaction(self, _deadline_s: float) -> None:
        self._step("abort")
        self._reports.clear()

    def _step(self, name: str) -> None:
        self.calls.append(name)
        if self.failures.get(name):
            raise self.failures[name].pop(0)


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> PlanLog:
    monkeypatch.setattr(plan_log, "Producer", FakeProducer)
    monkeypatch.setattr(plan_log, "read_plans", lambda *_: SimpleNamespace(newest=None, highest_epoch=0, unusable=""))
    return PlanLog(Connection(bootstrap_servers="nowhere:1"))


def producer(log: PlanLog) -> FakeProducer:
    fake = log._producer
    assert isinstance(fake, FakeProducer)
    return fake


def test_a_commit_without_the_record_does_not_count(log: PlanLog) -> None:
    producer(log).undelivered = True
    with pytest.raises(PlanNotWrittenError, match="no broker has acknowledged it"):
        log.write(("a",), None, "lost")
    assert log.newest is None
    producer(log).undelivered = False
    log.write(("a",), None, "again")
    assert log.newest is not None
    assert log.newest.epoch == 2


def test_a_commit_that_timed_out_is_repeated_to_learn_its_outcome(log: PlanLog) -> None:
    producer(log).failures["commit"] = [refused(KafkaError._TIMED_OUT)] * 2
    for reason in ("first", "still no answer"):
        with pytest.raises(PlanNotWrittenError):
            log.write(("a",), None, reason)
    assert log.newest is None
    log.write(("b",), None, "second")
    assert producer(log).calls.count("produce") == 2, "nothing is produced while the first is undecided"
    assert log.newest is not None
    assert (log.newest.epoch, log.newest.reason) == (2, "second")


def test_after_a_timed_out_abort_only_the_abort_is_repeated(log: PlanLog) -> None:
    producer(log).failures["commit"] = [refused(KafkaError._TIMED_OUT), refused(KafkaError._MSG_TIMED_OUT, abort=True)]
    producer(log).failures["abort"] = [refused(KafkaError._TIMED_OUT)] * 2
    for _ in range(3):
        with pytest.raises(PlanNotWrittenError):
            log.write(("a",), None, "lost")
    log.write(("a",), None, "again")
    assert log.newest is not None
    assert log.newest.reason == "again"
    after = producer(log).calls[producer(log).calls.index("abort") :]
    assert after == ["abort", "abort", "abort", "begin", "produce", "commit"]


def test_a_replaced_controller_gets_a_fenced_error_at_any_step(log: PlanLog) -> None:
    producer(log).failures["begin"] = [refused(KafkaError._FENCED, fatal=True)]
    with pytest.raises(FencedError):
        log.write(("a",), None, "too late")
