"""The reports of a replica: its progress to the autoscaler, its health and its metrics over HTTP."""

import asyncio
import math
import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

import msgspec
from aiokafka.structs import TopicPartition
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import Metric

from contracts.clock import monotonic_s, now_us
from contracts.metrics import MetricSpec
from contracts.pages import Answer, PortTakenError, WebServer, http_error, not_found
from contracts.progress import COUNTS_WITHIN_TARGET, MAX_REBALANCES, Progress, ReplicaState
from services.consumer import metrics
from services.consumer.clients import Clients
from services.consumer.handover import Handover
from services.consumer.interface import Health, Options, ReplicaError, Topics
from services.consumer.lease import Lease
from services.consumer.membership import Membership
from services.consumer.metrics import Buckets
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueue, PartitionQueues
from services.consumer.server import Server

OPEN_TRANSACTION_S: Final = 10.0  # age from which it is reported; most end within a second
LOOK_INTERVAL_S: Final = 1.0  # between two searches for open transactions
CANCELLATION_GRACE_S: Final = 1.0  # a handler may take this long to end after its time-out
MAX_REPORTED_REASONS: Final = 5
"""Most reasons in a progress report. All partitions may be cut off, and four reports a second are sent."""
MAX_REASON_CHARS: Final = 300
ANSWER_TIMEOUT_S: Final = 5.0  # after which the event loop counts as blocked
UNAVAILABLE: Final = "503 Service Unavailable"
ALIVE_ANSWER: Final = Answer(b'{"alive":true}')


@dataclass(eq=False, slots=True, kw_only=True)
class Vitals:
    """Collects progress, health and metrics of a replica. Each report resets its service times and rebalances."""

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
    latencies: Buckets
    pages: str = ""
    """Address of its pages, HOST:PORT; empty: none."""
    _looked_s: float = -math.inf
    _open: tuple[str, ...] = ()
    """Result of the last search for open transactions, and when it began (seconds)."""
    _unstable: dict[int, tuple[int, float]] = field(default_factory=dict)
    """Partition → offset of its first open transaction, and since when it has been this one (seconds)."""

    def progress(self) -> Progress:
        """Return a progress report. Service times and rebalances since the last report are reset."""
        queues, membership, plan = self.queues, self.membership, self.clients.plans.newest_plan
        recent_rebalances = tuple(self.handover.rebalance_reports[-MAX_REBALANCES:])
        self.handover.rebalance_reports = []
        health, serves = self.health(), membership.state in (ReplicaState.MEMBER, ReplicaState.DRAINING)
        return Progress(
            replica=self.replica,
            incarnation=self.incarnation,
            pid=os.getpid(),
            member_id=membership.member_id,
            generation=membership.generation,
            epoch=plan.epoch if plan else 0,
            assigned_epoch=self.clients.assignor.last_assignment.epoch,
            state=membership.state,
            partitions=queues.served_partitions if serves else (),
            positions={p: at for p, queue in queues.items() if (at := queue.position) is not None} if serves else {},
            skipped={p: queue.skipped for p, queue in queues.items() if queue.skipped} if serves else {},
            processed=self.server.events_handled,
            busy_us=int(self.busy_s() * 1_000_000),
            late=sum(self.server.latency_counts[COUNTS_WITHIN_TARGET:]),
            latencies=tuple(self.server.latency_counts),
            rebalances=self.handover.rebalances,
            at_us=now_us(),
            recent_rebalances=recent_rebalances,
            problems=shorten_reasons((*health.reasons, *health.notes)),
            host=socket.gethostname(),
            pages=self.pages,
            group=self.topics.group,
        )

    def health(self) -> Health:
        """Return whether the replica is healthy, and if not, all reasons."""
        owned_partitions = self.queues.owned_partitions
        commit_age_s = monotonic_s() - self.committer.last_confirmed_s
        cut_off = sorted((p, queue.cut_off_reason) for p, queue in self.queues.items() if queue.cut_off_reason)
        reasons = [f"partition {p} is not served any further: {why}" for p, why in cut_off]
        if (owned_partitions or self.membership.state is ReplicaState.MEMBER) and self.lease.is_expired:
            reasons.append(f"the group has not confirmed the membership for {self.lease.age_s:.1f} s: no event starts")
        held = ": no event starts" if self.queues.is_held else ""
        if owned_partitions and (held or commit_age_s > self.options.session_s + self.options.commit_interval_s):
            reasons.append(f"done events were not committed for {commit_age_s:.1f} s{held}")
        refused = self.clients.assignor.refused
        if reason := self.clients.assignor.last_assignment.refused:
            reasons.append(f"the group's leader gives this replica no partitions: {reason}")
        longest_s, limit_s = self.server.longest_handler_s(), self.options.handler_timeout_s
        if limit_s and longest_s > limit_s + CANCELLATION_GRACE_S:
            reasons.append(f"a handler has been at work for {longest_s:.0f} s and ignores its cancellation")
        if monotonic_s() - self._looked_s >= LOOK_INTERVAL_S:  # it takes a while with many partitions
            self._looked_s, self._open = monotonic_s(), tuple(self._open_transactions())
        members = (f"member {member_id} gets no partitions: {why}" for member_id, why in refused.items())
        return Health(
            ok=not reasons,
            reasons=tuple(reasons),
            notes=(*members, *self._open),
            state=self.membership.state,
            partitions=self.queues.served_partitions,
            lease_age_s=self.lease.age_s,
            commit_age_s=commit_age_s,
            reports_lost=self.clients.progress.lost,
            reports_problem=self.clients.progress.problem,
        )

    def _open_transactions(self) -> Iterator[str]:
        """Yield the partitions whose records have waited for a transaction to end for OPEN_TRANSACTION_S."""
        consumer, before, self._unstable = self.clients.consumer, self._unstable, {}
        places = {TopicPartition(self.topics.events, number) for number in self.queues.served_partitions}
        for place in sorted(places & consumer.assignment()):
            stable, end, now_s = consumer.last_stable_offset(place), consumer.highwater(place), monotonic_s()
            if stable is None or not 0 <= stable < end:
                continue
            since_s = before[place.partition][1] if stable in before.get(place.partition, ()) else now_s
            self._unstable[place.partition] = stable, since_s
            if now_s - since_s >= OPEN_TRANSACTION_S:
                yield f"{end - stable} records of {place.topic}/{place.partition} follow an open transaction"

    def collect(self) -> Iterator[Metric]:
        """Yield the current metrics, as a collector of prometheus-client."""
        server, latencies, partitions = self.server, self.latencies, self.queues.served_partitions
        labels = dict(zip(metrics.LABELS, (self.topics.group, self.replica), strict=True))
        served = [(str(partition), queue) for partition, queue in list(self.queues.items()) if queue.is_open]
        values: dict[MetricSpec, float | Mapping[tuple[str, ...], float]] = {
            metrics.IN_SLA: latencies.count_up_to(self.options.latency_target_s),
            metrics.TARGET: self.options.latency_target_s,
            metrics.BUDGET: 1 - self.options.percentile,
            metrics.EVENTS: server.events_handled,
            metrics.EVENTS_FAILED: server.events_failed,
            metrics.ATTEMPTS_RETRIED: server.attempts_retried,
            metrics.BUSY_SECONDS: self.busy_s(),
            metrics.PARTITIONS: len(partitions),
            metrics.PARTITIONS_TAKEN: self.handover.partitions_taken,
            metrics.HEALTHY: self.health().ok,
            metrics.PARTITION_AGE: {(name,): _oldest_s(queue) for name, queue in served},
            metrics.POSITION: {(name,): queue.position for name, queue in served if queue.position is not None},
        }
        yield latencies.collect(labels)
        yield self.handover.pauses.collect(labels)
        for declared, value in values.items():
            yield declared.of(value, labels)


def _oldest_s(queue: PartitionQueue) -> float:
    return max(0.0, now_us() / 1e6 - queue.backlog[0].timestamp_us / 1e6) if queue.backlog else 0.0


def shorten_reasons(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return the reasons that fit into a report and, if some do not, a line with their number."""
    omitted = len(reasons) - MAX_REPORTED_REASONS
    shortened = tuple(reason[:MAX_REASON_CHARS] for reason in reasons[:MAX_REPORTED_REASONS])
    return (*shortened, f"{omitted} more reasons") if omitted > 0 else shortened


class Pages:
    """Serves `/healthz` (200, or 503 with the reasons) and `/metrics`. While the event loop is blocked, all are 503.

    Probes for Kubernetes: `/readyz` is `/healthz`, but 503 outside the group. `/livez` is 200 if the event loop runs,
    also if the replica is unhealthy: while Kafka is away all replicas are, and a restart would not help.
    """

    def __init__(self, host: str, port: int, vitals: Vitals) -> None:
        self._host, self._port, self._vitals = host, port, vitals
        self._registry = CollectorRegistry()
        self._registry.register(vitals)
        self._pages = {
            "/healthz": self._healthz,
            "/readyz": self._readyz,
            "/livez": lambda: ALIVE_ANSWER,
            "/metrics": self._metrics,
        }
        self._server: WebServer | None = None

    def start(self, brokers: str) -> str:
        """Listen, if a port is configured. Return the address for clients, HOST:PORT, or "". Call it in the event loop.

        brokers: HOST:PORT,…. If it listens on all addresses, the address that reaches the first broker is returned.
        Raises ReplicaError if the port is taken.
        """
        if not self._port:
            return ""
        loop = asyncio.get_running_loop()
        try:
            self._server = WebServer(lambda path, _: self._answer(path, loop), max(0, self._port), self._host)
        except PortTakenError as taken:
            raise ReplicaError(f"{taken}, or Options(http_port=…)") from taken
        self._server.start()
        is_any = self._host in ("", "0.0.0.0", "::")  # noqa: S104  configured by the user
        host = local_address_towards(brokers) if is_any else self._host
        return f"[{host}]:{self._server.port}" if ":" in host else f"{host}:{self._server.port}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._server is not None:
            await asyncio.to_thread(self._server.close)

    def _answer(self, path: str, loop: asyncio.AbstractEventLoop) -> Answer:
        if path not in self._pages:
            return not_found(path, self._pages)

        async def page() -> Answer:
            return self._pages[path]()

        answer = asyncio.run_coroutine_threadsafe(page(), loop)
        try:
            return answer.result(ANSWER_TIMEOUT_S)
        except TimeoutError:
            answer.cancel()
            return http_error(UNAVAILABLE, f"the event loop has been blocked for {ANSWER_TIMEOUT_S:.0f} s")
        except CancelledError:
            return http_error(UNAVAILABLE, "the replica is stopping")

    def _healthz(self) -> Answer:
        health = self._vitals.health()
        return Answer(msgspec.json.encode(health), "200 OK" if health.ok else UNAVAILABLE)

    def _readyz(self) -> Answer:
        if self._vitals.membership.member_id:
            return self._healthz()
        return Answer(msgspec.json.encode({"ok": False, "reasons": ["not in the group"]}), UNAVAILABLE)

    def _metrics(self) -> Answer:
        return Answer(generate_latest(self._registry), content_type=CONTENT_TYPE_LATEST)


def local_address_towards(brokers: str) -> str:
    """Return the local address from which packets go to the first of `brokers`. No packet is sent."""
    host, _, port = brokers.split(",", maxsplit=1)[0].rpartition(":")
    with suppress(OSError, ValueError):
        family, kind, _, _, address = socket.getaddrinfo(host.strip("[] "), int(port), type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    return socket.gethostname()
