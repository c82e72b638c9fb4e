"""Follow a run by reading its topics into the state that the live view and the live page show."""

from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Final

import msgspec

from autoscaler.page.state import LiveState, ranks
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.events import DeadLetter, Timeline
from contracts.journal import JournalDecoder
from contracts.plan import plan_key
from contracts.progress import decode_progress
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import Group, Topic, partitions_of, qualified
from contracts.validation import DECODE_ERRORS
from loadgen.spec import Topology

WINDOW_S: Final = 5.0
"""Length of the window of latency figures, in seconds. It has enough events for a p99, and still shows bursts."""
STAGES: Final = {
    "order": ("placed_us", "accepted_us"), "payment": ("received_us", "done_us"),
    "shipment": ("done_us", "shipped_us"), "notification": ("shipped_us", "notified_us"),
}  # fmt: skip
"""Stage → its begin and end in a timeline."""
TIMELINES: Final = 300
"""Number of the newest finished events from which the times of the stages are computed."""


class _Finished(msgspec.Struct, frozen=True):
    order_id: str
    timeline: Timeline


@dataclass(slots=True)
class RunState(LiveState):
    """State of a run whose finished events are read one by one."""

    finished: set[str] = field(default_factory=set)
    dead_letters: set[str] = field(default_factory=set)
    timelines: deque[Timeline] = field(default_factory=lambda: deque(maxlen=TIMELINES))

    def percentiles(self) -> tuple[float, float, float] | None:
        """Return median, p99 and maximum latency of the window in s; None without events."""
        from_s = now_us() / 1e6 - WINDOW_S
        return ranks([one for second, found in self.seconds.items() if second >= from_s for one in found.latencies_s])

    def record_finished(self, order_id: str, timeline: Timeline) -> None:
        """Record one finished event. Duplicates are ignored."""
        if order_id in self.finished or timeline.done_us is None:
            return
        self.finished.add(order_id)
        self.timelines.append(timeline)
        self.record_latency(timeline.done_us, (timeline.done_us - timeline.intended_us) / 1e6)

    def stages(self) -> dict[str, float]:
        """Return stage → median time in ms of the newest events, for the stages that their timelines cover."""
        found = {}
        for name, (begin, end) in STAGES.items():
            times = [(getattr(at, begin), getattr(at, end)) for at in self.timelines]
            if spans := [after - before for before, after in times if before is not None and after is not None]:
                found[name] = round(median(spans) / 1e3, 1)
        return found


class Watcher:
    """Reads the topics of one run into a LiveState. It commits nothing and joins no group."""

    def __init__(
        self, connection: Connection, topology: Topology, latency_target_s: float, pipeline_partitions: int
    ) -> None:
        self.state = RunState(latency_target_s)
        last = Topic.NOTIFICATIONS_SENT if topology is Topology.PIPELINE else Topic.PAYMENTS_SETTLED
        space, topics = connection.namespace, (last, Topic.JOURNAL, Topic.PROGRESS, Topic.DEAD_LETTERS)
        self._names = {qualified(space, topic): topic for topic in topics}
        counts = {name: partitions_of(topic, 0, pipeline_partitions) for name, topic in self._names.items()}
        places = [(name, number) for name, count in counts.items() for number in range(count)]
        begins = dict.fromkeys(places, BEGINNING)  # fetched four times a second, not once for each event
        self._records = RecordReader(connection, begins, wait_ms=250, fetch_min_bytes=1_000_000)
        self._finished = msgspec.json.Decoder(_Finished)
        self._journal = JournalDecoder()
        self._keys = (None, plan_key(*(qualified(space, one) for one in (Group.PAYMENT, Topic.PAYMENTS_REQUESTED))))

    def poll(self, timeout_s: float) -> RunState:
        """Process the records that arrive within `timeout_s`. No error is raised if the broker is unreachable."""
        records = self._records.read(2000, timeout_s)
        with self.state.lock:
            for record in records:
                self._record(self._names[record.topic], record.key, record.value)
        return self.state

    def close(self) -> None:
        """Close the connection."""
        self._records.close()

    def _record(self, topic: Topic, key: bytes | None, value: bytes | None) -> None:
        """Process one Kafka record. Records that cannot be decoded are skipped."""
        with suppress(*DECODE_ERRORS):
            if topic is Topic.JOURNAL:
                if key in self._keys and (entry := self._journal.decode(value or b"")):
                    self.state.record_entry(entry)
            elif topic is Topic.PROGRESS:
                self.state.record_progress(decode_progress(value or b""))
            elif topic is Topic.DEAD_LETTERS:
                self.state.dead_letters.add(msgspec.json.decode(value or b"", type=DeadLetter).letter_id)
            else:
                event = self._finished.decode(value or b"")
                self.state.record_finished(event.order_id, event.timeline)
