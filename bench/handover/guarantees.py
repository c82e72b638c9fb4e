"""At least once against exactly once, side by side: what a reader of committed records has to wait for each.

The same handovers under the same load, in turn, then as much work as one replica can take.
"""

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import Consumer, TopicPartition

from autoscaler.live.kafka import reader
from bench import BenchError
from bench.handover import courses
from bench.handover.children import processes
from bench.handover.evidence import IntArray, Settled
from bench.handover.experiment import Announce
from bench.handover.load import fill
from bench.handover.outcomes import Faults, HandoverResult
from bench.handover.setup import Setup
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.delivery import Guarantee
from contracts.topics import PIPELINE_PARTITIONS, Topic, qualified
from contracts.validation import as_environment
from report.measures import percentile_us

WARM_SHARE: Final = 0.2
"""Of the events of the throughput run, that are not counted."""
THROUGHPUT_DEADLINE_S: Final = 120.0
POLL_S: Final = 0.05


class GuaranteeRow(Faults, frozen=True, kw_only=True):
    """One guarantee, over all its runs. Latencies in seconds, from the intended send."""

    guarantee: Guarantee
    runs: int
    events: int
    handovers: int
    served_p50_s: float
    """Until the replica has served the event."""
    served_p999_s: float
    seen_p50_s: float
    """Until a reader of committed records has its output."""
    seen_p99_s: float
    seen_p999_s: float
    moved_p99_s: float
    """Until served, of partitions that moved: the worst kind of step of the worst run."""
    throughput: float
    """Events/s of one replica whose events take no time, until they are seen; mean of the runs."""
    valid: bool
    """Every run counts: the generator was on time, and every step came to its end."""


class Sight:
    """Notes, in a thread of its own, when each settled payment can be read."""

    def __init__(self, connection: Connection) -> None:
        prompt = {"fetch_min_bytes": 1, "fetch_wait_max_ms": 100}
        self._consumer = Consumer(reader(connection, isolation_level="read_committed", **prompt))
        topic = qualified(connection.namespace, Topic.PAYMENTS_SETTLED)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PIPELINE_PARTITIONS)])
        self.seen: dict[int, tuple[int, int]] = {}
        """Intended time of an event → when it was served, and when seen first."""
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        decode = msgspec.json.Decoder(Settled).decode
        while not self._ends.is_set():
            record = self._consumer.poll(POLL_S)
            if record is not None and record.error() is None:
                row = decode(record.value()).timeline
                self.seen.setdefault(row.intended_us, (row.done_us, now_us()))

    @contextmanager
    def watching(self) -> Iterator["Sight"]:
        """Look as long as the block lasts."""
        self._thread.start()
        try:
            yield self
        finally:
            self._ends.set()
            self._thread.join()
            self._consumer.close()


Kafka = Callable[[], AbstractContextManager[Connection]]
"""A broker with a run's topics, which nobody else uses."""


def compare(
    setup: Setup, kafka: Kafka, announce: Announce, *, rounds: int, handovers: int, events: int
) -> list[GuaranteeRow]:
    """Measure each guarantee `rounds` times, alternating; events: of each throughput run. Raises BenchError."""
    results: dict[Guarantee, list[HandoverResult]] = {one: [] for one in Guarantee}
    times: dict[Guarantee, list[tuple[int, int, int]]] = {one: [] for one in Guarantee}
    rates: dict[Guarantee, list[float]] = {one: [] for one in Guarantee}
    for number in range(rounds):
        order = list(Guarantee) if number % 2 == 0 else list(reversed(Guarantee))
        for guarantee in order:
            done = sum(map(len, rates.values()))
            announce(str(guarantee), done)
            chosen = msgspec.structs.replace(
                setup, guarantee=guarantee, seed=setup.seed + number, began_s=time.monotonic()
            )
            with kafka() as connection, Sight(connection).watching() as sight:
                result, _ = courses.handover(
                    chosen, connection, lambda *_: None, steps=courses.Steps.MIXED, enough=handovers
                )
            results[guarantee].append(result)
            times[guarantee] += [(intended, served, seen) for intended, (served, seen) in sight.seen.items()]
            with kafka() as connection:
                rates[guarantee].append(throughput(connection, guarantee, setup.partitions, events))
    return [_row(one, results[one], np.array(times[one], dtype=np.int64), rates[one]) for one in Guarantee]


def throughput(connection: Connection, guarantee: Guarantee, partitions: int, events: int) -> float:
    """Return how many waiting events per second one replica makes visible whose events take no time.

    Raises BenchError when it does not serve them all in time.
    """
    if fill(connection, events, partitions):
        raise BenchError("the events of the throughput run were not taken by the broker")
    told = {"TAILPACK_GUARANTEE": str(guarantee), "TAILPACK_SERVICE_TIME_S": "0"}
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, Sight(connection).watching() as sight:
        replica = processes(Path(folder), "services.payment", os.environ | as_environment(connection) | told)
        try:
            replica.start()
            until_s = time.monotonic() + THROUGHPUT_DEADLINE_S
            while len(sight.seen) < events:
                if time.monotonic() > until_s:
                    raise BenchError(f"of {events} events {len(sight.seen)} were seen in {THROUGHPUT_DEADLINE_S} s")
                replica.check()
                time.sleep(POLL_S)  # the thread that reads fills `sight`
        finally:
            replica.close()
    seen_us = sorted(seen for _, seen in sight.seen.values())[int(WARM_SHARE * events) :]
    return (len(seen_us) - 1) / ((seen_us[-1] - seen_us[0]) / 1e6)


def _row(guarantee: Guarantee, results: list[HandoverResult], times: IntArray, rates: list[float]) -> GuaranteeRow:
    intended, served, seen = times.T
    served_us, seen_us = served - intended, seen - intended
    figures = [one.figures for one in results]
    return GuaranteeRow(
        guarantee=guarantee,
        runs=len(results),
        events=len(times),
        handovers=sum(one.handovers for one in figures),
        served_p50_s=percentile_us(served_us, 0.5) / 1e6,
        served_p999_s=percentile_us(served_us, 0.999) / 1e6,
        seen_p50_s=percentile_us(seen_us, 0.5) / 1e6,
        seen_p99_s=percentile_us(seen_us, 0.99) / 1e6,
        seen_p999_s=percentile_us(seen_us, 0.999) / 1e6,
        moved_p99_s=max(one.moved_p99_s or 0.0 for one in figures),
        throughput=round(sum(rates) / len(rates), 1),
        **{name: sum(getattr(one, name) for one in figures) for name in Faults.__struct_fields__},
        valid=all(one.valid for one in results),
    )
