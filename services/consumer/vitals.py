"""The reports of a replica: its progress to the autoscaler, its health and its metrics over HTTP."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Histogram, generate_latest
from prometheus_client.core import Metric

from contracts.clock import now_us, steady_s
from contracts.metrics import Declared
from contracts.pages import Answer, PortTakenError, WebServer, nowhere, refused
from contracts.progress import Progress, ReplicaState
from services.consumer import metrics
from services.consumer.clients import Clients
from services.consumer.handover import Handover
from services.consumer.interface import Health, Options, ReplicaError, Topics
from services.consumer.lease import Lease
from services.consumer.membership import Membership
from services.consumer.metrics import Latencies
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueue, PartitionQueues
from services.consumer.server import Server

OVERDUE_S: Final = 1.0  # how long after its time-out a handler may still be ending
MOST_TOLD: Final = 5
LONGEST_TOLD: Final = 300
"""Reasons in a report, and characters of each: all partitions may be cut off, and four reports a second go out."""
ANSWER_S: Final = 5.0  # an event loop that has not come to a page for so long does not turn
UNAVAILABLE: Final = "503 Service Unavailable"
ALIVE: Final = Answer(b'{"alive":true}')


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
    latencies: Latencies
    pages: str = ""
    """Where its pages are, HOST:PORT."""

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
            late=self.server.late,
            latencies=tuple(self.server.latencies),
            rebalances=self.handover.rounds,
            at_us=now_us(),
            service=self.server.service_times(),
            rounds=rounds,
            unwell=first_few(self.health().reasons),
            host=socket.gethostname(),
            pages=self.pages,
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
        server, latencies, partitions = self.server, self.latencies, self.queues.serving
        labels = dict(zip(metrics.LABELS, (self.topics.group, self.replica), strict=True))
        served = [(str(partition), queue) for partition, queue in list(self.queues.items()) if queue.is_open]
        values: dict[Declared, float | Mapping[tuple[str, ...], float]] = {
            metrics.IN_SLA: latencies.in_time,
            metrics.TARGET: latencies.target.latency_target_s,
            metrics.BUDGET: 1 - latencies.target.percentile,
            metrics.EVENTS: server.processed,
            metrics.FAILED: server.failed,
            metrics.RETRIED: server.retried,
            metrics.BUSY: self.busy_s(),
            metrics.PARTITIONS: len(partitions),
            metrics.TAKEN: self.handover.taken,
            metrics.WELL: self.health().ok,
            metrics.PARTITION_AGE: {(name,): _oldest_s(queue) for name, queue in served},
            metrics.POSITION: {(name,): queue.position for name, queue in served if queue.position is not None},
        }
        yield from _labelled(latencies.histogram, labels)
        yield from _labelled(self.handover.pauses, labels)
        for declared, value in values.items():
            yield declared.of(value, labels)


def _oldest_s(queue: PartitionQueue) -> float:
    return max(0.0, now_us() / 1e6 - queue.waiting[0].record.timestamp / 1e3) if queue.waiting else 0.0


def first_few(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return those that fit into a report, and how many more there are."""
    more = len(reasons) - MOST_TOLD
    cut = tuple(reason[:LONGEST_TOLD] for reason in reasons[:MOST_TOLD])
    return (*cut, f"{more} more of the kind") if more > 0 else cut


class Pages:
    """`/healthz` (200, or 503 with the reasons) and `/metrics`, made by the replica's own event loop.

    For Kubernetes: `/readyz` is `/healthz` of one that is in its group, and `/livez` says that the loop turns; while
    Kafka is away no replica is well, and to start one anew would mend nothing.
    """

    def __init__(self, host: str, port: int, vitals: Vitals) -> None:
        self._host = host
        self._port = port
        self._vitals = vitals
        self._registry = CollectorRegistry()
        self._registry.register(vitals)
        self._pages = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/livez": lambda: ALIVE,
            "/metrics": self._metrics,
        }
        self._server: WebServer | None = None

    def start(self, brokers: str) -> str:
        """Listen, where there is a port; return HOST:PORT at which others can ask. Call it in the event loop.

        brokers: HOST:PORT,…; where all addresses are listened on, others reach the one that faces the first broker.
        Raises ReplicaError: no such port.
        """
        if not self._port:
            return ""
        loop = asyncio.get_running_loop()
        try:
            self._server = WebServer(lambda path, _: self._asked(path, loop), max(0, self._port), self._host)
        except PortTakenError as taken:
            raise ReplicaError(f"{taken}, or Options(http_port=…)") from taken
        self._server.start()
        host = facing(brokers) if self._host in ("", "0.0.0.0", "::") else self._host  # noqa: S104  what it is told
        return f"[{host}]:{self._server.port}" if ":" in host else f"{host}:{self._server.port}"

    async def stop(self) -> None:
        """Listen no more."""
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    def _asked(self, path: str, loop: asyncio.AbstractEventLoop) -> Answer:
        if path not in self._pages:
            return nowhere(path, self._pages)

        async def made() -> Answer:
            return self._pages[path]()

        answer = asyncio.run_coroutine_threadsafe(made(), loop)
        try:
            return answer.result(ANSWER_S)
        except TimeoutError:
            answer.cancel()
            return refused(UNAVAILABLE, f"the event loop has not turned for {ANSWER_S:.0f} s")
        except CancelledError:
            return refused(UNAVAILABLE, "the replica is ending")

    def _healthz(self) -> Answer:
        health = self._vitals.health()
        return Answer(msgspec.json.encode(health), "200 OK" if health.ok else UNAVAILABLE)

    def _readyz(self) -> Answer:
        if self._vitals.membership.member_id:
            return self._healthz()
        return Answer(msgspec.json.encode({"ok": False, "reasons": ["not in the group"]}), UNAVAILABLE)

    def _metrics(self) -> Answer:
        return Answer(generate_latest(self._registry), content_type=CONTENT_TYPE_LATEST)


def facing(brokers: str) -> str:
    """Return our own address on the way to the first of `brokers`; nothing is sent."""
    host, _, port = brokers.split(",", maxsplit=1)[0].rpartition(":")
    with suppress(OSError, ValueError):
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[] "), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    return socket.gethostname()


def _labelled(histogram: Histogram, labels: Mapping[str, str]) -> Iterator[Metric]:
    """Yield what a histogram without labels has observed so far, with these labels."""
    for metric in histogram.collect():
        samples = [one for one in metric.samples if not one.name.endswith("_created")]
        metric.samples = [type(one)(one.name, {**labels, **one.labels}, *one[2:]) for one in samples]
        yield metric
