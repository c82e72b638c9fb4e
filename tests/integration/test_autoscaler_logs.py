"""The autoscaler's readers and its plan log on a real broker."""

import random
import time

import msgspec
import psutil
import pytest
from journal_entries import entries
from kafka_helpers import admin, create_topics, produce, read_all, wait_for
from odd_headers import produce_odd

from autoscaler.live.journal import JournalTopic
from autoscaler.live.metrics import Metrics
from autoscaler.live.plan_log import TRANSACTION_TIMEOUT_S, FencedError, PlanLog, PlanNotWrittenError
from autoscaler.live.progress_reader import ProgressReader
from contracts.connection import Connection
from contracts.journal import PartitionState, TickRecord
from contracts.plan import PlanRecord, plan_key
from contracts.progress import Progress, ReplicaState
from contracts.topics import PAYMENT_GROUP, Topic, qualified
from tailpack.local.broker import Broker

pytestmark = pytest.mark.kafka
PARTITIONS = 3
FOREIGN = b'{"v": 1, "epoch": 9, "replicas": ["\xe4"], "replica": "\xe4"}'
"""Neither plan nor report: a byte of it is no UTF-8."""


@pytest.fixture
def connection(kafka: str, namespace: str) -> Connection:
    create_topics(kafka, namespace, PARTITIONS)
    return Connection(bootstrap_servers=kafka, namespace=namespace)


class TestPlanLog:
    def test_a_new_controller_continues_after_the_plan_in_force(self, connection: Connection) -> None:
        first = PlanLog(connection)
        assert first.newest is None
        for count in (1, 2):
            first.write(tuple(f"payment-{n}" for n in range(count)), {0: "payment-0"}, f"plan {count}")
        second = PlanLog(connection)
        assert second.newest is not None
        assert (second.newest.epoch, second.newest.reason) == (2, "plan 2")
        assert second.write(("payment-0",), None, "next").epoch == 3

    def test_the_second_controller_fences_the_first(self, connection: Connection) -> None:
        first, second = PlanLog(connection), PlanLog(connection)
        with pytest.raises(FencedError, match="another autoscaler"):
            first.write(("payment-0",), None, "too late")
        second.write(("payment-1",), None, "in force")
        with pytest.raises(FencedError):
            first.write(("payment-0",), None, "still too late")
        assert [(plan.epoch, plan.reason) for plan in self.stored(connection)] == [(1, "in force")]
        records = read_all(connection.bootstrap_servers, connection.namespace, Topic.PLANS)
        assert records[0].key() == plan_key(
            f"{connection.namespace}.payment", f"{connection.namespace}.payments.requested"
        )

    @pytest.mark.parametrize("size", [6_000_000, 1_000_000], ids=["beyond the client's limit", "beyond the brokers'"])
    def test_a_plan_above_the_size_limit_is_not_in_force_but_the_next_one_is(
        self, connection: Connection, size: int
    ) -> None:
        log = PlanLog(connection, write_deadline_s=10)
        log.write(("payment-0",), None, "good")
        noise = random.Random(1).randbytes(size).hex()
        for _ in range(3):
            assert not self.written(log, "larger", noise)
            assert log.newest is not None
            assert log.newest.reason == "good"
        wait_for(lambda: self.written(log, "smaller"), "a plan that fits")
        assert [plan.reason for plan in self.stored(connection)] == ["good", "smaller"]
        assert log.newest == self.stored(connection)[-1]

    def test_a_plan_of_a_hundred_thousand_partitions_fits(self, connection: Connection) -> None:
        log = PlanLog(connection, write_deadline_s=10)
        owners = {partition: f"payment-{partition % 200}" for partition in range(100_000)}
        log.write(tuple(f"payment-{ordinal}" for ordinal in range(200)), owners, "large")
        assert self.stored(connection)[-1].assignment == owners

    def test_without_its_topic_no_plan_is_in_force(self, connection: Connection) -> None:
        log = PlanLog(connection)
        log.write(("payment-0",), None, "good")
        topic = qualified(connection.namespace, Topic.PLANS)
        client = admin(connection.bootstrap_servers)
        client.delete_topics([topic])[topic].result(60)
        wait_for(lambda: not self.written(log, "before the broker removed it"), "the broker refuses plans")
        in_force = log.newest
        with pytest.raises(PlanNotWrittenError):
            log.write(("payment-0", "payment-1"), None, "lost")
        assert log.newest is in_force
        create_topics(connection.bootstrap_servers, connection.namespace, PARTITIONS)

        wait_for(lambda: self.written(log, "again"), "a plan in the new topic")
        assert self.stored(connection)[-1] == log.newest

    @pytest.mark.parametrize("away_s", [2.0, TRANSACTION_TIMEOUT_S + 2])
    def test_after_a_broker_froze_during_a_write_plans_are_written_or_the_controller_exits(
        self, private_broker: Broker, namespace: str, away_s: float
    ) -> None:
        create_topics(private_broker.address(), namespace, PARTITIONS)
        log = PlanLog(Connection(bootstrap_servers=private_broker.address(), namespace=namespace))
        log.write(("payment-0",), None, "good")
        broker = psutil.Process(private_broker.nodes[1].pid)
        broker.suspend()
        try:
            since_s = time.monotonic()
            while time.monotonic() < since_s + away_s:
                assert not self.written(log, "lost")
        finally:
            broker.resume()
        try:
            wait_for(lambda: self.written(log, "again"), "a plan, once the broker answers")
        except FencedError:
            assert away_s > TRANSACTION_TIMEOUT_S, "the brokers had no reason to give the transaction up"
            log = PlanLog(Connection(bootstrap_servers=private_broker.address(), namespace=namespace))
            assert self.written(log, "again"), "by its successor"
        assert log.newest is not None
        assert log.newest.reason == "again"

    def written(self, log: PlanLog, reason: str, replica: str = "payment-1") -> bool:
        try:
            log.write(("payment-0", replica), None, reason)
        except PlanNotWrittenError:
            return False
        return True

    def stored(self, connection: Connection) -> list[PlanRecord]:
        records = read_all(connection.bootstrap_servers, connection.namespace, Topic.PLANS)
        return [msgspec.json.decode(record.value(), type=PlanRecord) for record in records]

    def test_records_that_are_not_plans_are_skipped(self, connection: Connection) -> None:
        PlanLog(connection).write(("payment-0",), None, "good")
        produce(connection.bootstrap_servers, connection.namespace, Topic.PLANS, [b"{}", b"not json", b"", FOREIGN])
        produce_odd(connection.bootstrap_servers, connection.namespace, Topic.PLANS, b"{", b"}")
        assert getattr(PlanLog(connection).newest, "reason", "") == "good"


class TestJournal:
    def test_a_tick_with_many_partitions_is_read_back_unchanged(self, connection: Connection) -> None:
        warnings: list[str] = []
        key = plan_key(PAYMENT_GROUP.group_in(connection.namespace), PAYMENT_GROUP.topic_in(connection.namespace))
        topic = JournalTopic(connection, key, Metrics(), warnings.append)
        taken = [
            TickRecord(
                at_us=number, tick=number, policy="linear", action="no-change", reason="", service_rate=200.0,
                partitions=tuple(
                    PartitionState(partition=at, arrival_rate=number / 3 + at, lag=at, owner=f"payment-{at % 200}")
                    for at in range(12_000)
                ),
                ready_replicas=1, requested_replicas=1, planned_replicas=1, epoch=1,
            )
            for number in (1, 2)
        ]  # fmt: skip
        for tick in taken:
            topic.record(tick)
        assert topic.close() == 0
        assert not any(warnings)
        records = read_all(connection.bootstrap_servers, connection.namespace, Topic.JOURNAL)
        assert len(records) > 2
        assert {record.key() for record in records} == {key}
        assert entries(record.value() or b"" for record in records) == taken


def report(replica: str, at_us: int, epoch: int = 0) -> bytes:
    return msgspec.json.encode(
        Progress(
            replica=replica, incarnation="1", pid=1, member_id="", generation=-1, epoch=epoch, assigned_epoch=0,
            state=ReplicaState.WARM, partitions=(), positions={}, processed=0, busy_us=0, rebalances=0, at_us=at_us,
        )
    )  # fmt: skip


class TestProgress:
    def test_the_newest_report_of_each_replica_is_read_at_the_start(self, connection: Connection) -> None:
        ProgressReader(connection, deadline_s=900.0).close()  # an empty topic is read without waiting
        now_us = int(time.time() * 1e6)
        reports = [report("payment-0", now_us - 9), report("payment-1", now_us - 5_000_000, 7), b"nonsense", FOREIGN]
        reports += [report("payment-0", now_us)]
        produce_odd(connection.bootstrap_servers, connection.namespace, Topic.PROGRESS, b"{", b"}")
        produce(connection.bootstrap_servers, connection.namespace, Topic.PROGRESS, reports)
        reader = ProgressReader(connection)
        try:
            assert set(reader.poll()) == {"payment-0", "payment-1"}
            assert reader.poll()["payment-0"].at_us == now_us
            assert {report.replica: report.epoch for report in reader.recent()} == {"payment-0": 0, "payment-1": 7}
            assert reader.age_s("payment-1") < 5, "what counts is when it arrived"
            assert reader.age_s("payment-9") == float("inf")
            assert reader.take_late_events() == {}, "nobody counts"
        finally:
            reader.close()
