"""Health, progress and pages of an unhealthy replica."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession
from aiokafka_bench import TOPIC, ZERO

from contracts.progress import ReplicaState
from services.consumer import vitals
from services.consumer.interface import Options, Topics
from services.consumer.lease import Lease
from services.consumer.metrics import LATENCY, PAUSE, Buckets
from services.consumer.partition_queue import PartitionQueues
from services.consumer.rebalance import AssignmentMetadata
from services.consumer.vitals import Pages, Vitals


class Replica:
    """Vitals with real queues and a real lease; all other parts are idle."""

    def __init__(self, state: ReplicaState = ReplicaState.MEMBER) -> None:
        self.now_s = 0.0
        self.lease = Lease(6.0, 10.0, lambda: self.now_s)
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        idle: Any = SimpleNamespace(
            last_confirmed_s=float("inf"), longest_handler_s=lambda: 0.0, events_handled=0,
            latency_counts=[], events_failed=0, attempts_retried=0, rebalances=0, partitions_taken=0,
            rebalance_reports=[], state=state, member_id="", generation=1, plans=SimpleNamespace(newest_plan=None),
            assignor=SimpleNamespace(last_assignment=AssignmentMetadata(), refused={}),
            pauses=Buckets(PAUSE), progress=SimpleNamespace(lost=3, problem="no topic"),
            consumer=SimpleNamespace(assignment={ZERO}.copy, highwater=lambda _: 9, last_stable_offset=lambda _: 9),
        )  # fmt: skip
        self.vitals = Vitals(
            replica="one", incarnation="1", topics=Topics(group="g", events=TOPIC, plans="", progress=""),
            options=Options(percentile=0.9), clients=idle, queues=self.queues, server=idle, lease=self.lease,
            committer=idle, handover=idle, membership=idle, busy_s=lambda: 0.0, latencies=Buckets(LATENCY, 0.5),
        )  # fmt: skip

    def metric(self, name: str, **labels: str) -> float:
        answers = (one for family in self.vitals.collect() for one in family.samples)
        full = f"tailpack_consumer_{name}"
        return next(one.value for one in answers if one.name == full and labels.items() <= one.labels.items())


@pytest.mark.parametrize("partitions", [1, 0])
def test_a_replica_is_unhealthy_while_its_lease_is_expired(partitions):
    """Also a member without partitions, because it would start no event of new ones."""
    replica = Replica()
    replica.queues.open(dict.fromkeys(range(partitions), 0), epoch=1)
    assert replica.vitals.health().ok
    for replica.now_s in (7.0, 8.0):
        (reason,) = replica.vitals.health().reasons
        assert f"not confirmed the membership for {replica.now_s:.1f} s" in reason
        assert replica.vitals.progress().problems == (reason,)
        assert replica.metric("healthy") == 0
    replica.lease.renew(8.0)
    assert replica.vitals.health().ok
    assert replica.vitals.progress().problems == ()
    assert replica.metric("healthy") == 1


def test_an_open_transaction_behind_which_records_wait_is_named(monkeypatch):
    replica = Replica()
    replica.queues.open({0: 0}, epoch=1)
    consumer, seen = replica.vitals.clients.consumer, []
    for now_s, stable in ((0, 5), (9, 5), (10, 5), (11, 6), (20, 6), (21, 9)):
        monkeypatch.setattr(vitals, "monotonic_s", lambda now_s=now_s: now_s)
        consumer.last_stable_offset = lambda _, stable=stable: stable
        seen += [(now_s, note) for note in replica.vitals.health().notes]
    assert seen == [(10, f"4 records of {TOPIC}/0 follow an open transaction")]


def test_a_replica_is_ready_if_it_is_a_healthy_member():
    replica = Replica()

    async def statuses() -> list[int]:
        pages, answers = Pages("127.0.0.1", -1, replica.vitals), []
        address = pages.start("")
        try:
            async with ClientSession() as session:
                for replica.vitals.membership.member_id, replica.now_s in (("", 0.0), ("member", 0.0), ("member", 7.0)):
                    async with session.get(f"http://{address}/readyz") as answer:
                        answers.append(answer.status)
        finally:
            await pages.stop()
        return answers

    assert asyncio.run(statuses()) == [503, 200, 503]


def test_a_blocked_event_loop_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vitals, "ANSWER_TIMEOUT_S", 0.1)

    async def statuses() -> tuple[int, bytes]:
        served = Pages("127.0.0.1", -1, Replica().vitals)
        host, _, port = served.start("").rpartition(":")

        def ask() -> tuple[int, bytes]:
            connection = HTTPConnection(host, int(port), timeout=5)
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            return answer.status, answer.read()

        with ThreadPoolExecutor() as pool:
            found = pool.submit(ask).result()  # blocks the loop, like a handler that waits without `await`
        await served.stop()
        return found

    status, body = asyncio.run(statuses())
    assert (status, b"event loop has been blocked" in body) == (503, True)


@pytest.mark.parametrize("begun_us", [[999_000], [999_000, 998_000], [0, 999_000], [1_500_000, 999_000]])
def test_a_batch_is_counted_like_its_events(begun_us):
    batch, single = Buckets(LATENCY, 0.5), Buckets(LATENCY, 0.5)
    batch.observe_since(begun_us, 1_000_000)
    for one_us in begun_us:
        single.observe((1_000_000 - one_us) / 1e6)
    assert batch.collect({"group": "g"}).samples == single.collect({"group": "g"}).samples
