"""What a replica tells of itself: its progress to the autoscaler, its health and its metrics to whoever asks."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
from aiohttp import web
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from contracts.clock import now_us, steady_s
from contracts.progress import Progress, ReplicaState
from services.consumer.clients import Clients
from services.consumer.handover import Handover
from services.consumer.interface import Health, Options, ReplicaError, Topics
from services.consumer.lease import Lease
from services.consumer.membership import Membership
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueues
from services.consumer.server import Server

OVERDUE_S: Final = 1.0
"""How long after its time-out a handler may still be ending."""
MOST_TOLD: Final = 5
LONGEST_TOLD: Final = 300
"""Reasons in a report, and characters of each: all partitions may be cut off, and four reports a second go out."""
PREFIX: Final = "tailpack_consumer_"


@dataclass(eq=False, slots=True, kw_only=True)
class Vitals:
    """Reads the parts of a running replica; changes none of them but to empty what was reported."""

    replica: str
    incarnation: str
    topics: Topics
    options: Options
    clients: Clients
    queues: PartitionQueues
    server: Server
    lease: Lease
    committer: Committer
    handover: Handover
    membership: Membership
    busy_s: Callable[[], float]

    def progress(self) -> Progress:
        """Return the report of this moment; service times and rounds begin anew with the next one."""
        queues, membership, plan = self.queues, self.membership, self.clients.plans.newest
        rounds, self.handover.timings = tuple(self.handover.timings), []
        serves = membership.state in (ReplicaState.MEMBER, ReplicaState.DRAINING)
        return Progress(
            replica=self.replica,
            incarnation=self.incarnation,
            pid=os.getpid(),
            member_id=membership.member_id,
            generation=membership.generation,
            epoch=plan.epoch if plan else 0,
            assigned_epoch=self.clients.assignor.last.epoch,
            state=membership.state,
            partitions=queues.serving if serves else (),
            positions={p: at for p, queue in queues.items() if (at := queue.position) is not None} if serves else {},
            processed=self.server.processed,
            busy_us=int(self.busy_s() * 1_000_000),
            rebalances=self.handover.rounds,
            at_us=now_us(),
            service=self.server.service_times(),
            rounds=rounds,
            unwell=first_few(self.health().reasons),
        )

    def health(self) -> Health:
        """Return whether the replica is well, and if not, every reason why."""
        held = self.queues.held
        commit_age_s = steady_s() - self.committer.confirmed_s
        cut_off = sorted((p, queue.cut_off) for p, queue in self.queues.items() if queue.cut_off)
        reasons = [f"partition {p} is not served on: {why}" for p, why in cut_off]
        if (held or self.membership.state is ReplicaState.MEMBER) and self.lease.is_out:
            reasons.append(f"the group has not confirmed the membership for {self.lease.age_s:.1f} s: nothing is begun")
        if held and commit_age_s > self.options.session_s + self.options.commit_interval_s:
            reasons.append(f"what is done was not committed for {commit_age_s:.1f} s")
        longest_s, limit_s = self.server.longest_s(), self.options.handler_timeout_s
        if limit_s and longest_s > limit_s + OVERDUE_S:
            reasons.append(f"a handler has been at work for {longest_s:.0f} s and ignores its cancellation")
        return Health(
            ok=not reasons,
            reasons=tuple(reasons),
            state=self.membership.state,
            partitions=self.queues.serving,
            lease_age_s=self.lease.age_s,
            commit_age_s=commit_age_s,
        )

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this moment, as a collector of prometheus-client does."""
        health, server, handover = self.health(), self.server, self.handover
        counters = {
            "events": (server.processed, "Events that are done, failed ones included"),
            "events_failed": (server.failed, "Events handed over after their last attempt"),
            "attempts_retried": (server.retried, "Attempts that failed and were followed by another"),
            "busy_seconds": (self.busy_s(), "Time spent handling events"),
            "rounds": (handover.rounds, "Rebalances taken part in"),
            "partitions_taken": (handover.taken, "Partitions taken over"),
            "partitions_released": (handover.released, "Partitions given up"),
        }
        queues = [queue for _, queue in self.queues.items()]
        gauges = {
            "well": (health.ok, "1: the replica is well"),
            "partitions": (len(health.partitions), "Partitions that are served"),
            "partitions_cut_off": (sum(bool(queue.cut_off) for queue in queues), "Partitions whose log is another one"),
            "events_waiting": (sum(len(queue.waiting) for queue in queues), "Events fetched and not begun"),
            "events_in_flight": (sum(len(queue.unfinished) for queue in queues), "Events begun and not done"),
            "lag": (sum(map(self._lag, health.partitions)), "Events of the partitions served that are not done"),
            "lease_out": (self.lease.is_out, "1: nothing is begun before the group has confirmed the membership"),
            "lease_age_seconds": (health.lease_age_s, "Since the group confirmed the membership"),
            "commit_age_seconds": (health.commit_age_s, "Since all that was done was committed"),
            "handler_seconds": (server.longest_s(), "How long the longest handler has been at work"),
        }
        labels = {"group": self.topics.group, "replica": self.replica}
        for kind, metrics in ((CounterMetricFamily, counters), (GaugeMetricFamily, gauges)):
            for name, (value, text) in metrics.items():
                metric = kind(PREFIX + name, text, labels=list(labels))
                metric.add_metric(list(labels.values()), float(value))
                yield metric

    def _lag(self, partition: int) -> int:
        position = self.queues[partition].position
        try:
            end = self.clients.consumer.highwater(TopicPartition(self.topics.events, partition))
        except KafkaError:  # not fetched now
            return 0
        return 0 if end is None or position is None else max(0, end - position)


def first_few(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return those that fit into a report, and how many more there are."""
    more = len(reasons) - MOST_TOLD
    cut = tuple(reason[:LONGEST_TOLD] for reason in reasons[:MOST_TOLD])
    return (*cut, f"{more} more of the kind") if more > 0 else cut


class Pages:
    """`/healthz` (200, or 503 with the reasons) and `/metrics` over HTTP, from the replica's own event loop."""

    def __init__(self, host: str, port: int, vitals: Vitals) -> None:
        self._host = host
        self._port = port
        self._vitals = vitals
        self._registry = CollectorRegistry()
        self._registry.register(vitals)
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen, where there is a port. Raises ReplicaError: it cannot be had."""
        if not self._port:
            return
        app = web.Application()
        app.add_routes([web.get("/healthz", self._healthz), web.get("/metrics", self._metrics)])
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        try:
            await web.TCPSite(self._runner, self._host, self._port).start()
        except OSError as taken:
            raise ReplicaError(f"{self._host}:{self._port} cannot be listened on ({taken}); set http_port") from taken

    async def stop(self) -> None:
        """Listen no more."""
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _: web.Request) -> web.Response:
        health = self._vitals.health()
        body = msgspec.json.encode(health)
        return web.Response(body=body, status=200 if health.ok else 503, content_type="application/json")

    async def _metrics(self, _: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._registry), headers={"Content-Type": CONTENT_TYPE_LATEST})
