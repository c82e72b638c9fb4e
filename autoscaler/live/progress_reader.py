"""Reads the progress topic: the newest report of each replica, its late events, and the plan by which it serves."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from autoscaler.live.partition_offsets import RecordShares
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.plan import PlanRecord
from contracts.progress import Progress, Rebalance, decode_progress
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import PAYMENT_GROUP, ScaledGroup, Topic, qualified
from contracts.validation import DECODE_ERRORS
from contracts.waiting import WaitTimeoutError, until

STALE_AFTER_S: Final = 2.0
"""Age at which a report is stale. Reports come every 250 ms, in large groups every 500 ms."""
MAX_REPEAT_PAUSE_S: Final = 60.0
"""Longest pause before a plan that a member did not adopt is written again. Each repetition costs a rebalance."""
UNREADABLE_SHOWN_S: Final = 60.0
_TAIL_REPORTS: Final = 2000
"""Reports to read back at the start: two minutes of four replicas. Older reports are useless."""
_BATCH_REPORTS: Final = 1000
_MAX_POLL_GAP_S: Final = 1.0
"""A longer pause between polls does not count as silence of the replicas, as this process was busy or frozen."""


class ProgressReader:
    """Reads progress reports. Never waits: a thread fetches them. `poll` takes those that have arrived."""

    def __init__(
        self,
        connection: Connection,
        scaled: ScaledGroup = PAYMENT_GROUP,
        *,
        deadline_s: float = 10.0,
        clock: Callable[[], float] = monotonic_s,
    ) -> None:
        """Read the last reports, for `deadline_s` at most. Reports that name another group are ignored."""
        place = qualified(connection.namespace, Topic.PROGRESS), 0
        self._clock, self._group = clock, scaled.group_in(connection.namespace)
        self.is_ours: Callable[[Progress], bool] = lambda report: True
        """Returns whether a replica of this autoscaler wrote a report. Others are ignored."""
        self._newest: dict[str, Progress] = {}
        self._arrived_s: dict[str, float] = {}
        """Replica → arrival of its newest report, by `_listening_time_s`."""
        self._polled_s = clock()
        self._missed_s = 0.0
        self._unreadable = float("-inf"), ""  # arrival of the newest record that is not a report, and why it is not one
        self._rebalances: list[Rebalance] = []
        self._late_events = LateEventCounter(clock)
        self._shares = RecordShares(clock)
        self.record_shares = self._shares.shares
        self._records = RecordReader(connection, {place: BEGINNING}, tail=_TAIL_REPORTS, wait_ms=250)
        self._tail_left = _TAIL_REPORTS
        with suppress(WaitTimeoutError):  # read the whole tail before the first decision
            until(lambda: self._take(0.05), deadline_s, "the end of the topic", poll_s=0)

    def poll(self) -> Mapping[str, Progress]:
        """Take new reports and return the newest report of each replica, however old."""
        self._take(0)
        return MappingProxyType(self._newest)

    def take_rebalances(self) -> tuple[Rebalance, ...]:
        """Return the rebalances that replicas have reported since the last call."""
        rebalances, self._rebalances = tuple(self._rebalances), []
        return rebalances

    def take_late_events(self) -> dict[str, int]:
        """Return replica → late events since the last call, for replicas that have reported since."""
        return self._late_events.take()

    def newest(self, replica: str) -> Progress | None:
        """Return the newest report of `replica`, however old."""
        return self._newest.get(replica)

    def age_s(self, replica: str) -> float:
        """Return the age of the newest report of `replica`, seconds; infinite if it never reported.

        It counts from the arrival, without pauses of this process. Time stamps of other machines are not comparable.
        """
        arrived_s = self._arrived_s.get(replica)
        return float("inf") if arrived_s is None else self._listening_time_s() - arrived_s

    def recent(self) -> list[Progress]:
        """Return the newest report of each of our replicas that is at most `STALE_AFTER_S` old."""
        newest = dict(self._newest).items()
        return [report for name, report in newest if self.age_s(name) <= STALE_AFTER_S and self.is_ours(report)]

    def metric_addresses(self) -> list[str]:
        """Return HOST:PORT of the metrics of each replica with a recent report. May be called from another thread."""
        return sorted(report.pages for report in self.recent() if report.pages)

    @property
    def unreadable(self) -> str:
        """Why a record of the last minute is not a valid report; empty: all are valid."""
        at_s, why = self._unreadable
        return why if self._listening_time_s() - at_s < UNREADABLE_SHOWN_S else ""

    def close(self) -> None:
        """Disconnect from the brokers."""
        self._records.close()

    def _listening_time_s(self) -> float:
        return self._clock() - self._missed_s

    def _take(self, timeout_s: float) -> bool:
        passed_s = self._clock() - self._polled_s
        self._missed_s += passed_s if passed_s > _MAX_POLL_GAP_S else 0.0
        for record in self._records.read(_BATCH_REPORTS, timeout_s):
            self._tail_left -= 1  # while replicas report, the end itself may never be reached
            try:
                report = decode_progress(record.value or b"")
            except DECODE_ERRORS as error:
                self._unreadable = self._listening_time_s(), f"skipped offset {record.offset}: {error}"
                continue
            if report.group not in ("", self._group) or not self.is_ours(report):
                continue
            self._rebalances += report.recent_rebalances
            self._late_events.record_report(report)
            self._shares.record_report(report)
            self._newest[report.replica] = report
            self._arrived_s[report.replica] = self._listening_time_s()
        self._polled_s = self._clock()
        if self._tail_left > 0 and self._records.is_at_end():
            self._tail_left = 0
        return self._tail_left <= 0


class LateEventCounter:
    """Counts the late events that replicas report between two observations.

    It counts every report, because a replica may leave or be replaced before the next observation.
    """

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._counted: dict[str, tuple[str, int]] = {}
        self._new: dict[str, int] = {}
        self._observed_s: float | None = None

    def record_report(self, report: Progress) -> None:
        """Count the late events of one report."""
        if report.late is None:
            return
        incarnation, before = self._counted.get(report.replica, ("", 0))
        if incarnation != report.incarnation:
            # If it was busy for less than the time since the last observation, all its events count.
            is_new = self._observed_s is not None and report.busy_us / 1e6 <= self._clock() - self._observed_s
            before = 0 if is_new else report.late
        self._counted[report.replica] = report.incarnation, report.late
        self._new[report.replica] = self._new.get(report.replica, 0) + max(0, report.late - before)

    def take(self) -> dict[str, int]:
        """Return replica → late events since the last call, including replicas that have left.

        The first call returns zeros: late events before the first observation do not count.
        """
        new, self._new = self._new, {}
        if self._observed_s is None:
            new = dict.fromkeys(new, 0)
        self._observed_s = self._clock()
        return new


class PlanAdoption:
    """Observes whether members adopt the newest plan. A report names the plan by which its member serves.

    within_s: how long a member may serve by an older plan. on_adopted: called when every member serves by
    the newest plan, with the seconds since this plan was written.
    """

    def __init__(self, within_s: float, clock: Callable[[], float], on_adopted: Callable[[float], None]) -> None:
        self._within_s, self._clock, self._on_adopted = within_s, clock, on_adopted
        self._epoch = 0
        self._since_s: float | None = None
        """When the newest plan was written; None: it was adopted, or was found at the start."""
        self._behind: dict[str, tuple[int, float]] = {}
        """Member → epoch of the older plan that it serves by, and since when."""
        self._pause_s = within_s
        self._repeat_at_s = 0.0
        self.laggards: tuple[str, ...] = ()
        """Members that still serve by an older plan after `within_s`."""

    def observe(self, plan: PlanRecord | None, epochs: Mapping[str, int]) -> None:
        """Compare the reports with the plan. epochs: member → epoch of its assignment, without silent members."""
        if plan is None:
            return
        self._epoch, now_s = plan.epoch, self._clock()
        behind = {name: epoch for name in plan.replicas if (epoch := epochs.get(name, plan.epoch)) < plan.epoch}
        self._behind = {
            name: known if (known := self._behind.get(name, (epoch, now_s)))[0] == epoch else (epoch, now_s)
            for name, epoch in behind.items()
        }
        self.laggards = tuple(name for name, (_, since_s) in self._behind.items() if now_s - since_s >= self._within_s)
        if not self.laggards:
            self._pause_s, self._repeat_at_s = self._within_s, 0.0
        if self._since_s is not None and not behind and epochs.keys() >= set(plan.replicas):
            self._on_adopted(now_s - self._since_s)
            self._since_s = None

    @property
    def is_repeat_due(self) -> bool:
        """Whether the plan should be written again now."""
        return bool(self.laggards) and self._clock() >= self._repeat_at_s

    def on_written(self, plan: PlanRecord) -> None:
        """Start to measure how long the members take to adopt a new plan.

        While a member keeps an older plan, the newest is written again. The pause between writes doubles, to a limit.
        """
        self._epoch, self._since_s = plan.epoch, self._clock()
        if self.laggards:
            self._repeat_at_s = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, max(MAX_REPEAT_PAUSE_S, self._within_s))

    def describe_laggards(self) -> str:
        """Return which members lag behind; empty: none."""
        listed = ", ".join(f"{name} (serves by plan {self._behind[name][0]})" for name in self.laggards)
        return f"plan {self._epoch} was not adopted within {self._within_s:g} s by {listed}" if listed else ""
