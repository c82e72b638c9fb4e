"""Health, progress and pages of an unhealthy replica."""

import asyncio
from http.client import HTTPConnection
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import ClientSession
from consumer_fakes import TOPIC
from generators.metrics import declared_in

from contracts.progress import ReplicaState, ServiceTimes
from contracts.settings import Target
from services.consumer import metrics, vitals
from services.consumer.interface import Options, Topics
from services.consumer.lease import Lease
from services.consumer.metrics import PAUSE, Latencies
from services.consumer.partition_queue import PartitionQueues
from services.consumer.vitals import Pages, Vitals


class Replica:
    """Vitals with real queues and a real lease; all other parts are idle."""

    def __init__(self, state: ReplicaState = ReplicaState.MEMBER) -> None:
        self.now_s = 0.0
        self.lease = Lease(6.0, 10.0, lambda: self.now_s)
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        none: Any = SimpleNamespace(
            last_confirmed_s=float("inf"), longest_handler_s=lambda: 0.0, service_times=ServiceTimes, events_handled=0,
            events_late=None, latency_counts=[], events_failed=0, attempts_retried=0, rebalances=0, partitions_taken=0,
            rebalance_reports=[], state=state, member_id="", generation=1, plans=SimpleNamespace(newest_plan=None),
            assignor=SimpleNamespace(last_assignment=SimpleNamespace(epoch=0)),
            consumer=SimpleNamespace(highwater=lambda at: 12), pauses=PAUSE.kept(None),
        )  # fmt: skip
        self.vitals = Vitals(
            replica="one", incarnation="1", topics=Topics(group="g", events=TOPIC, plans="", progress=""),
            options=Options(), clients=none, queues=self.queues, server=none, lease=self.lease, committer=none,
            handover=none, membership=none, busy_s=lambda: 0.0, latencies=Latencies(Target(percentile=0.9)),
        )  # fmt: skip

    def metric(self, name: str, **labels: str) -> float:
        found = (one for family in self.vitals.collect() for one in family.samples)
        return next(
            one.value
            for one in found
            if one.name == f"tailpack_consumer_{name}" and labels.items() <= one.labels.items()
        )


@pytest.mark.parametrize("partitions", [1, 0])
def test_a_replica_is_unhealthy_while_its_lease_is_expired(partitions):
    """Also a member without partitions, because it would start no event of new ones."""
    one = Replica()
    one.queues.open(dict.fromkeys(range(partitions), 0), epoch=1)
    assert one.vitals.health().ok
    for one.now_s in (7.0, 8.0):
        (reason,) = one.vitals.health().reasons
        assert f"not confirmed the membership for {one.now_s:.1f} s" in reason
        assert one.vitals.progress().unwell == (reason,)
        assert one.metric("well") == 0
    one.lease.renew(8.0)
    assert one.vitals.health().ok
    assert one.vitals.progress().unwell == ()
    assert one.metric("well") == 1


def test_a_replica_is_ready_if_it_is_a_healthy_member():
    one = Replica()

    async def asked() -> list[int]:
        pages, found = Pages("127.0.0.1", -1, one.vitals), []
        address = pages.start("")
        try:
            async with ClientSession() as session:
                for one.vitals.membership.member_id, one.now_s in (("", 0.0), ("member", 0.0), ("member", 7.0)):
                    async with session.get(f"http://{address}/readyz") as answer:
                        found.append(answer.status)
        finally:
            await pages.stop()
        return found

    assert asyncio.run(asked()) == [503, 200, 503]


def test_a_blocked_event_loop_is_reported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(vitals, "ANSWER_TIMEOUT_S", 0.1)

    async def asked() -> tuple[int, bytes]:
        served = Pages("127.0.0.1", -1, Replica().vitals)
        host, _, port = served.start("").rpartition(":")
        found = []

        def ask() -> None:
            connection = HTTPConnection(host, int(port), timeout=5)
            connection.request("GET", "/livez")
            answer = connection.getresponse()
            found.append((answer.status, answer.read()))

        asker = Thread(target=ask)
        asker.start()
        asker.join()  # blocks the loop, like a handler that waits without `await`
        await served.stop()
        return found[0]

    status, body = asyncio.run(asked())
    assert (status, b"event loop has been blocked" in body) == (503, True)


def test_exactly_the_declared_metrics_are_exported():
    shown = {(one.name, one.type): one.documentation for one in Replica().vitals.collect()}
    declared = declared_in(metrics)
    assert shown == {(one.name.removesuffix("_total"), one.kind): one.meaning for one in declared}
