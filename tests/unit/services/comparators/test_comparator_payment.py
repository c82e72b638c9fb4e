"""The comparators do the work of `services.payment`: same record, same timeline, same pace."""

import msgspec
import pytest
from payment_group import request

from contracts.events import DeadLetter, PaymentSettled
from contracts.topics import Topic
from services.comparators.payment import Work, event_of
from services.payment.settings import ReplicaSettings


class Clock:
    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def event(value: bytes | None, key: bytes = b"order"):
    return event_of("run.payments.requested", 4, 17, key=key, value=value, timestamp_us=1_000, received_us=2_000)


def work(clock: Clock, **settings: object) -> Work:
    return Work(ReplicaSettings(replica="payment-0", **settings), clock)


def test_a_good_event_is_settled_with_this_replicas_part_of_the_timeline():
    asked = request(1)
    clock = Clock()
    server = work(clock)
    server.begin(b"order", idle=True)
    clock.now_s += 0.005

    outgoing, took_s = server.finish(event(msgspec.json.encode(asked)))

    assert took_s == pytest.approx(0.005)
    assert outgoing.topic is Topic.PAYMENTS_SETTLED
    assert outgoing.key == asked.order_id.encode()
    settled = msgspec.json.decode(outgoing.value, type=PaymentSettled)
    line = settled.timeline
    assert settled.accepted
    assert line.intended_us == asked.timeline.intended_us
    assert (line.received_us, line.partition, line.offset, line.replica, line.epoch) == (2_000, 4, 17, "payment-0", 0)
    assert line.done_us is not None


@pytest.mark.parametrize("value", [None, b"", b"not json", b"{}"])
def test_what_is_no_payment_becomes_a_dead_letter(value):
    server = work(Clock())
    server.begin(b"order", idle=True)

    outgoing, _ = server.finish(event(value))

    assert outgoing.topic is Topic.DEAD_LETTERS
    assert msgspec.json.decode(outgoing.value, type=DeadLetter).offset == 17


def test_events_that_wait_are_served_on_a_running_deadline():
    clock = Clock()
    server = work(clock, service_time_s=0.005)

    assert server.begin(None, idle=True) == pytest.approx(50.005)
    clock.now_s = 50.0061  # woken a little late
    assert server.begin(None, idle=False) == pytest.approx(50.010), "the delay is made up"
    clock.now_s = 51.0
    assert server.begin(None, idle=True) == pytest.approx(51.005), "an idle server begins when the event comes"
    assert server.busy_s == pytest.approx(0.015)


def test_slow_events_take_what_an_experiment_wants_them_to():
    assert work(Clock(), slow_event_s=2.0).begin(b"slow-1", idle=True) == pytest.approx(52.0)
    assert work(Clock()).begin(b"slow-1", idle=True) == pytest.approx(50.005)
