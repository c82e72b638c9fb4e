"""Payment as a service: how long an event takes, and what is written once it is served."""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
import pytest
from payment_group import request

from contracts.connection import Connection
from contracts.events import PaymentSettled
from services.consumer import Delivery, Event, Options
from services.payment.service import PaymentService
from services.payment.settings import ReplicaSettings, options_of

CONNECTION = Connection(bootstrap_servers="localhost:1", namespace="run-1")


def service(**fields: object) -> tuple[PaymentService, list[tuple[str, bytes | None, bytes]]]:
    """A service whose records go into a list."""
    one = PaymentService(ReplicaSettings(**({"replica": "payment-0", "service_time_s": 0.002} | fields)), CONNECTION)
    written: list[tuple[str, bytes | None, bytes]] = []

    async def send(topic: str, key: bytes | None, value: bytes) -> "asyncio.Future[None]":
        written.append((topic, key, value))
        return asyncio.get_running_loop().create_future()

    one.consumer.send = send  # type: ignore[method-assign]
    return one, written


def event(number: int = 1, *, key: bytes = b"order", value: bytes | None = None) -> Event:
    value = msgspec.json.encode(request(number)) if value is None else value
    return Event("run-1.payments.requested", 3, 41, key, value, (), 0, received_us=1, epoch=7)


def told(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())


def test_an_event_takes_its_service_time_and_is_done_when_its_verdict_is_acknowledged():
    async def story() -> None:
        one, written = service()
        began_s = asyncio.get_running_loop().time()
        acknowledged = await one.handle(event())
        assert asyncio.get_running_loop().time() - began_s >= 0.002
        assert not acknowledged.done(), "the broker has not answered"

        ((topic, key, value),) = written
        settled = msgspec.json.decode(value, type=PaymentSettled)
        assert topic == "run-1.payments.settled"
        assert key == settled.order_id.encode()
        assert (settled.timeline.replica, settled.timeline.epoch, settled.timeline.partition) == ("payment-0", 7, 3)
        assert one._pace.busy_s == pytest.approx(0.002)

    told(story)


def test_what_cannot_be_settled_goes_to_the_dead_letters_of_the_run():
    async def story() -> None:
        one, written = service(service_time_s=0.0)
        await one.handle(event(value=b"{}"))
        assert [topic for topic, _, _ in written] == ["run-1.dead.letters"]

    told(story)


@pytest.mark.parametrize(
    ("key", "slow_event_s", "expected_s"),
    [(b"slow-1", 1.5, 1.5), (b"slow-1", 0.0, 0.002), (b"quick", 1.5, 0.002), (None, 1.5, 0.002)],
)
def test_only_in_experiments_are_there_slow_events(key, slow_event_s, expected_s):
    told = ReplicaSettings(replica="payment-0", service_time_s=0.002, slow_event_s=slow_event_s)

    assert told.service_time_of(key) == expected_s


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"replica": ""}, "replica must not be empty"),
        ({"replica": "r", "service_time_s": -0.1}, "must not be negative"),
        ({"replica": "r", "payment_partitions": -1}, "must not be negative"),
        ({"replica": "r", "slow_event_s": -1.0}, "must not be negative"),
        ({"replica": "r", "heartbeat_s": 9.0}, "heartbeat_s 9.0"),
        ({"replica": "r", "drain_s": -1.0}, "drain_s"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(fields, problem):
    with pytest.raises(ValueError, match=problem):
        ReplicaSettings(**fields)


def test_the_consumer_gets_every_option_and_nothing_else():
    settings = ReplicaSettings(replica="r", session_s=9.0, delivery=Delivery.EAGER, drain_s=1.0, concurrency=3)

    assert options_of(settings) == Options(session_s=9.0, delivery=Delivery.EAGER, drain_s=1.0, concurrency=3)
