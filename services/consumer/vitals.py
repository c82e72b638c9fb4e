"""What a replica tells of itself: its progress to the autoscaler, its health and its metrics to whoever asks."""

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition
from prometheus_client.core import Metric

from contracts.clock import now_us, steady_s
from contracts.metrics import Declared
from contracts.progress import Progress, ReplicaState
from services.consumer import metrics
from services.consumer.clients import Clients
from services.consumer.handover import Handover
from services.consumer.interface import Health, Options, Topics
from services.consumer.lease import Lease
from services.consumer.membership import Membership
from services.consumer.metrics import Latencies
from services.consumer.output import Committer
from services.consumer.partition_queue import PartitionQueue, PartitionQueues
from services.consumer.server import Server

OVERDUE_S: Final = 1.0
"""How long after its time-out a handler may still be ending."""
MOST_TOLD: Final = 5
LONGEST_TOLD: Final = 300
"""Reasons in a report, and characters of each: all partitions may be cut off, and four reports a second go out."""


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
        health, server, handover, latencies = self.health(), self.server, self.handover, self.latencies
        labels = dict(zip(metrics.LABELS, (self.topics.group, self.replica), strict=True))
        queues = list(self.queues.items())
        lags = {str(partition): self._lag(partition) for partition in health.partitions}
        served = [(str(partition), queue) for partition, queue in queues if queue.is_open]
        values: dict[Declared, float | Mapping[tuple[str, ...], float]] = {
            metrics.IN_SLA: latencies.in_time,
            metrics.TARGET: latencies.target.latency_target_s,
            metrics.BUDGET: 1 - latencies.target.percentile,
            metrics.BURN: latencies.burn,
            metrics.EVENTS: server.processed,
            metrics.FAILED: server.failed,
            metrics.RETRIED: server.retried,
            metrics.BUSY: self.busy_s(),
            metrics.ROUNDS: handover.rounds,
            metrics.TAKEN: handover.taken,
            metrics.RELEASED: handover.released,
            metrics.WELL: health.ok,
            metrics.PARTITIONS: len(health.partitions),
            metrics.CUT_OFF: sum(bool(queue.cut_off) for _, queue in queues),
            metrics.WAITING: sum(len(queue.waiting) for _, queue in queues),
            metrics.IN_FLIGHT: sum(len(queue.unfinished) for _, queue in queues),
            metrics.LAG: sum(lags.values()),
            metrics.LEASE_OUT: self.lease.is_out,
            metrics.LEASE_AGE: health.lease_age_s,
            metrics.COMMIT_AGE: health.commit_age_s,
            metrics.HANDLER: server.longest_s(),
            metrics.EPOCH: self.clients.assignor.last.epoch,
            metrics.PARTITION_LAG: {(name,): lag for name, lag in lags.items()},
            metrics.PARTITION_AGE: {(name,): _oldest_s(queue) for name, queue in served},
            metrics.POSITION: {(name,): queue.position for name, queue in served if queue.position is not None},
        }
        yield metrics.LATENCY.observed(latencies.buckets, labels)
        yield metrics.PAUSE.observed(handover.pauses, labels)
        for declared, value in values.items():
            yield declared.of(value, labels)

    def _lag(self, partition: int) -> int:
        position = self.queues[partition].position
        try:
            end = self.clients.consumer.highwater(TopicPartition(self.topics.events, partition))
        except KafkaError:  # not fetched now
            return 0
        return 0 if end is None or position is None else max(0, end - position)


def _oldest_s(queue: PartitionQueue) -> float:
    """Return the age of the oldest event that waits, seconds."""
    return max(0.0, now_us() / 1e6 - queue.waiting[0].record.timestamp / 1e3) if queue.waiting else 0.0


def first_few(reasons: Sequence[str]) -> tuple[str, ...]:
    """Return those that fit into a report, and how many more there are."""
    more = len(reasons) - MOST_TOLD
    cut = tuple(reason[:LONGEST_TOLD] for reason in reasons[:MOST_TOLD])
    return (*cut, f"{more} more of the kind") if more > 0 else cut
