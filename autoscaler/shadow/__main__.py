"""tailpack shadow, python -m autoscaler.shadow: watch a group that others scale, and report what would be done.

It reads offsets and members, writes no record, joins no group and commits nothing. SIGTERM or SIGINT ends it; then the
last line on standard output summarises what would have been saved.
"""

import logging
import os
import signal
import sys
from collections import deque
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

from autoscaler.controller import Controller
from autoscaler.live.composition import TICKS_MISSED
from autoscaler.live.journal import KEPT, LiveJournal
from autoscaler.live.loads import LoadReader
from autoscaler.live.loop import Loop
from autoscaler.live.metrics import Shown
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.troubles import LASTING, Troubles, status_of
from autoscaler.live.web import Source, serving
from autoscaler.policies.registry import PolicyConfig
from autoscaler.policies.settings import REPLICA_PREFIX
from autoscaler.ports import Policy
from autoscaler.shadow import settings as declared
from autoscaler.shadow.seen import CommittedRates, MemberReader
from autoscaler.shadow.settings import ShadowSettings
from autoscaler.shadow.would_be import WouldBeGroup
from contracts.clock import monotonic_s
from contracts.connection import Connection, read_settings
from contracts.journal import JournalEntry, TickRecord

log = logging.getLogger("shadow")


def main(config: Path | None = None) -> int:
    """Run until SIGTERM or SIGINT. config: a TOML file; the environment goes first. Returns the exit code."""
    policies: list[Policy] = []

    def make(told: ShadowSettings) -> None:
        policies.append(told.made(lambda: PolicyConfig(told, told, told, told.options()).policy()))

    def run() -> int:
        connection, settings = read_settings(os.environ, ShadowSettings, config, make)
        shadow = Shadow(connection, settings, policies[0])
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: shadow.stop.set())
        shadow.run()
        sys.stdout.write(f"{shadow.summary()}\n")
        return 0

    return status_of(log, run)


class Shadow:
    """One shadow with everything around it."""

    def __init__(self, connection: Connection, settings: ShadowSettings, policy: Policy) -> None:
        """Make the clients; nothing is asked yet. Raises KafkaException (the client's settings)."""
        self.stop = Event()
        self._settings = settings
        topic, name = settings.topic_in(connection.namespace), settings.group_in(connection.namespace)
        self._name = f"{name} on {topic}"
        self._shown = Shown(vars(declared).values())
        flags = self._shown[declared.TROUBLE]
        self._troubles = Troubles(log.warning, lambda what, is_so: flags.labels(what).set(is_so))
        self._offsets = OffsetReader.of(connection, settings, settings.decision_interval_s)
        self._loads = LoadReader(self._offsets)
        self._members = MemberReader(connection, name, topic)
        self._group = WouldBeGroup(
            self._loads,
            self._members.look,
            CommittedRates(settings.member_rate),
            prefix=REPLICA_PREFIX,
            startup_s=settings.member_startup_s,
            rebalance_time_s=settings.rebalance_time_s,
            latency_target_s=settings.latency_target_s,
        )
        self._recent: deque[TickRecord] = deque(maxlen=KEPT)
        journal = LiveJournal(self._record, self._group.status, policy.name, self._troubles)
        self._controller = Controller(self._group, policy, journal)
        self._loop = Loop(
            self._tick,
            lambda: self._loads.sample(monotonic_s()),
            interval_s=settings.decision_interval_s,
            offset_s=settings.tick_offset_s,
            stop=self.stop,
            urgent=partial(self._troubles.asked, "watch", self._controller.urgent, fatal=MemoryError),
        )

    def run(self) -> None:
        """Watch until told to stop. Raises PortTakenError."""
        source = Source(
            last_tick=self._loop.last_tick,
            plan=self._page,
            decisions=lambda limit: list(self._recent)[: -limit - 1 : -1],
            registry=self._shown.registry,
            tick_limit_s=TICKS_MISSED * self._settings.decision_interval_s,
            troubles=lambda: self._troubles.now,
            unwell=lambda: self._troubles.unwell,
        )
        try:
            with serving(source, self._settings) as begin:
                begin()
                self._loop.run()
        finally:
            self._offsets.close()

    def summary(self) -> str:
        """Say in one line what was and what would have been."""
        minutes = self._group.watched_s / 60
        if not minutes:
            why = "; ".join(self._troubles.now.values()) or "too short"
            return f"{self._name}: nothing was compared: {why}"
        was, would = self._group.actual, self._group.would_be
        saved = (was.replica_s - would.replica_s) / 60
        share = f", {saved / (was.replica_s / 60):+.0%}" if was.replica_s else ""
        return (
            f"{self._name}, {minutes:.1f} minutes: {was.replica_s / 60:.1f} replica-minutes were used, "
            f"{would.replica_s / 60:.1f} would have been (saved {saved:.1f}{share}); events waited longer than "
            f"{self._settings.latency_target_s:g} s for {was.late_s:.0f} s, and would have for {would.late_s:.0f} s"
        )

    def _tick(self) -> None:
        self._troubles.survived("tick", self._controller.tick, fatal=MemoryError, unwell_after=LASTING)
        self._troubles.tell("members", self._members.trouble)
        self._shown[declared.WATCHED].set(self._group.watched_s)
        self._shown[declared.SERVICE_RATE].set(self._group.status().service_rate)
        for of, account in (("group", self._group.actual), ("would_be", self._group.would_be)):
            self._shown[declared.REPLICAS].labels(of).set(account.replicas)
            self._shown[declared.LAG].labels(of).set(account.lag_s)
            self._shown[declared.MINUTES].labels(of).set(account.replica_s / 60)
            self._shown[declared.LATE].labels(of).set(account.late_s)

    def _record(self, entry: JournalEntry) -> None:
        assert isinstance(entry, TickRecord)
        self._recent.append(entry)
        self._shown[declared.DECISIONS].labels(entry.action).inc()
        self._troubles.tell("comparison", f"waits for the {entry.missing}" if entry.missing else "", after=LASTING)

    def _page(self) -> dict[str, Any]:
        plan = self._group.plan
        return {
            "summary": self.summary(),
            "would_be": {"replicas": plan.replicas, "assignment": plan.assignment and dict(plan.assignment)},
        }


if __name__ == "__main__":
    sys.exit(main())
