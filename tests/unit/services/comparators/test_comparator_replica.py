"""A comparator's replica: the work of `services.payment`, what it tells of itself, and its duties while it waits."""

import msgspec
import pytest
from payment_group import request

from contracts.events import DeadLetter, PaymentSettled
from contracts.progress import ReplicaState, ServiceTimes
from contracts.topics import Topic
from services.comparators.librdkafka import Duties
from services.comparators.replica import Tally, Work
from services.consumer import Event
from services.payment.settings import ReplicaSettings


def settled(value: bytes | None):
    work = Work(ReplicaSettings(replica="payment-0", service_time_s=0.0))
    work.begin(b"order", idle=True)
    return work.finish(Event("run.payments.requested", 4, 17, b"k", value, (), 1_000, received_us=2_000, epoch=0))[0]


def test_a_good_event_is_settled_with_this_replicas_part_of_the_timeline():
    asked = request(1)
    outgoing = settled(msgspec.json.encode(asked))

    assert (outgoing.topic, outgoing.key) == (Topic.PAYMENTS_SETTLED, asked.order_id.encode())
    line = msgspec.json.decode(outgoing.value, type=PaymentSettled).timeline
    assert line.intended_us == asked.timeline.intended_us
    assert (line.received_us, line.partition, line.offset, line.replica, line.epoch) == (2_000, 4, 17, "payment-0", 0)
    assert line.done_us is not None


@pytest.mark.parametrize("value", [None, b"", b"not json", b"{}"])
def test_what_is_no_payment_becomes_a_dead_letter(value):
    outgoing = settled(value)

    assert outgoing.topic is Topic.DEAD_LETTERS
    assert msgspec.json.decode(outgoing.value, type=DeadLetter).offset == 17


@pytest.fixture
def tally() -> Tally:
    return Tally("payment-0")


def test_a_replica_is_warm_until_its_first_partition_and_a_member_from_then_on(tally):
    assert tally.report(0.0).state is ReplicaState.WARM
    tally.taken([])
    assert tally.report(0.0).state is ReplicaState.WARM
    tally.taken([3, 1])
    assert tally.report(0.0).state is ReplicaState.MEMBER
    tally.given_up([1, 3])
    assert tally.report(0.0).state is ReplicaState.MEMBER
    tally.stopping = True
    assert tally.report(0.0).state is ReplicaState.STOPPING


def test_partitions_come_and_go_one_by_one_and_take_their_positions_along(tally):
    tally.taken([3, 1])
    tally.served(1, 41, 0.005)
    tally.taken([2])
    tally.served(2, 7, 0.005)
    tally.given_up([1])

    report = tally.report(0.0)

    assert report.partitions == (2, 3)
    assert report.positions == {2: 8}
    assert report.processed == 2


def test_service_times_are_those_since_the_report_before(tally):
    tally.taken([0])
    tally.served(0, 1, 0.004)
    tally.served(0, 2, 0.006)

    report = tally.report(busy_s=0.01)

    assert report.busy_us == 10_000
    assert report.service == ServiceTimes(events=2, mean_us=5000, max_us=6000)
    assert tally.report(0.0).service == ServiceTimes()


def test_without_a_plan_both_epochs_are_zero_and_each_start_is_another_incarnation(tally):
    report = tally.report(0.0)

    assert (report.epoch, report.assigned_epoch) == (0, 0)
    assert report.incarnation != Tally("payment-0").report(0.0).incarnation


class Clock:
    """Time that only passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def duties(clock) -> Duties:
    return Duties(clock, clock.sleep)


def test_a_duty_runs_at_its_interval_during_a_long_wait_that_ends_on_time(duties, clock):
    ran_at = []
    duties.add(0.25, lambda: ran_at.append(clock.now_s))

    duties.wait_until(101.1)

    assert ran_at == pytest.approx([100.25, 100.5, 100.75, 101.0])
    assert clock.now_s == pytest.approx(101.1)


def test_a_duty_that_was_due_long_ago_runs_once(duties, clock):
    ran = []
    duties.add(0.1, lambda: ran.append(clock.now_s))
    clock.now_s += 5.0

    duties.run_due()

    assert ran == [105.0]
