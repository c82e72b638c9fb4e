"""`tailpack shadow`, `python -m autoscaler.shadow`: observe a group, and report what a policy would do and save.

It reads offsets and members. It writes no record, joins no group and commits nothing. SIGTERM or SIGINT ends it. Then
the last line on standard output is the summary.
"""

import logging
import os
import signal
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from autoscaler.controller import Controller
from autoscaler.live.composition import MAX_MISSED_TICKS
from autoscaler.live.journal import LiveJournal
from autoscaler.live.loads import LoadReader
from autoscaler.live.loop import Loop, warm_up_policy
from autoscaler.live.metrics import MetricSet
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.problems import PERSISTENT_TICKS, Problems, exit_status_of
from autoscaler.live.web import Source, serving
from autoscaler.page.feed import EntryFeed
from autoscaler.policies.registry import PolicyConfig
from autoscaler.ports import Policy
from autoscaler.shadow import settings as declared
from autoscaler.shadow.measurements import MemberReader
from autoscaler.shadow.settings import ShadowSettings
from autoscaler.shadow.shadow_group import ShadowGroup
from contracts.clock import monotonic_s
from contracts.connection import Connection, read_settings
from contracts.journal import JournalEntry, TickRecord
from contracts.waiting import Stop

log = logging.getLogger("shadow")


def main(config: Path | None = None) -> int:
    """Run until SIGTERM or SIGINT. config: a TOML file. The environment overrides it. Returns the exit code."""
    policies: list[Policy] = []

    def make(own: ShadowSettings) -> None:
        config = PolicyConfig(own, own, own, own.options())
        policies.extend(own.create_policy(config.policy) for _ in range(2))

    def run() -> int:
        connection, settings = read_settings(os.environ, ShadowSettings, config, make)
        shadow = Shadow(connection, settings, policies[0])
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, shadow.end)
        shadow.run(policies[1])
        sys.stdout.write(f"{shadow.summary()}\n")
        return 0

    return exit_status_of(log, run)


class Shadow:
    """The shadow with its clients and pages."""

    def __init__(self, connection: Connection, settings: ShadowSettings, policy: Policy) -> None:
        """Create the clients without a request. Raises KafkaException for invalid client settings."""
        self.stop = Stop()
        self._settings = settings
        topic, name = settings.topic_in(connection.namespace), settings.group_in(connection.namespace)
        self._name = f"{name} on {topic}"
        self._metrics = MetricSet(vars(declared).values())
        condition = self._metrics[declared.CONDITION]
        self._problems = Problems(log.warning, lambda name, has_problem: condition.labels(name).set(has_problem))
        self._offsets = OffsetReader.of(connection, settings, settings.decision_interval_s, is_foreign=True)
        self._loads = LoadReader(self._offsets)
        self._members = MemberReader(connection, name, topic)
        self._group = ShadowGroup(self._loads, self._members.read, settings)
        head = {"title": f"shadow of {name}", "phase": "observing", "percentile": settings.percentile}
        self._live = EntryFeed(settings.latency_target_s, self._offsets.partitions, more=lambda: head)
        self._journal = LiveJournal(self._record, self._group.status, policy.name, self._problems)
        self._controller = Controller(self._group, policy, self._journal)
        self._loop = Loop(
            self._tick,
            lambda: self._loads.sample(monotonic_s()),
            interval_s=settings.decision_interval_s,
            offset_s=settings.tick_offset_s,
            stop=self.stop,
            urgent=partial(self._problems.query, "watch", self._controller.urgent, fatal=MemoryError),
        )

    def end(self, *_: object) -> None:
        """Set `stop`, from a signal. Before the first tick, end at once: the warm-up compiles for many seconds."""
        is_starting = not self._loop.ticks and not self.stop.is_set()
        self.stop.set()
        if is_starting:
            raise KeyboardInterrupt

    def run(self, throw_away: Policy) -> None:
        """Compile by a throw-away policy, then observe until `stop` is set. Raises PortTakenError."""
        source = Source(
            last_tick=self._loop.last_tick,
            plan=self._page,
            decisions=lambda limit: list(self._journal.recent)[: -limit - 1 : -1],
            registry=self._metrics.registry,
            tick_limit_s=MAX_MISSED_TICKS * self._settings.decision_interval_s,
            problems=lambda: self._problems.current,
            unhealthy_reason=lambda: self._problems.unhealthy_reason,
            live=self._live.feed,
        )
        try:
            with serving(source, self._settings) as start:
                start()
                with suppress(KeyboardInterrupt):
                    warm_up_policy(throw_away, 1, self._settings.decision_interval_s)
                    self._loop.run()
        finally:
            self._offsets.close()

    def summary(self) -> str:
        """Return the comparison in one line."""
        minutes = self._group.compared_s / 60
        if not minutes:
            reason = "; ".join(self._problems.current.values()) or "the run was too short"
            return f"{self._name}: no comparison: {reason}"
        actual, shadow = self._group.actual, self._group.shadow
        saved = (actual.replica_s - shadow.replica_s) / 60
        share = f", {saved / (actual.replica_s / 60):+.0%}" if actual.replica_s else ""
        return (
            f"{self._name}, {minutes:.1f} minutes: the group used {actual.replica_s / 60:.1f} replica-minutes, "
            f"the shadow {shadow.replica_s / 60:.1f} (saved {saved:.1f}{share}); the oldest event waited longer than "
            f"{self._settings.latency_target_s:g} s for {actual.late_s:.0f} s, in the shadow for {shadow.late_s:.0f} s"
            + (f"; unknown and not counted: {self._group.unknown}" if self._group.unknown else "")
        )

    def _tick(self) -> None:
        self._problems.run_step("tick", self._controller.tick, fatal=MemoryError, unhealthy_after=PERSISTENT_TICKS)
        self._problems.report("members", self._members.problem)
        self._problems.report("transactions", self._loads.hidden)
        self._metrics[declared.COMPARED].set(self._group.compared_s)
        self._metrics[declared.SERVICE_RATE].set(self._group.status().service_rate)
        for of, account in (("group", self._group.actual), ("would_be", self._group.shadow)):
            self._metrics[declared.REPLICAS].labels(of).set(account.replicas)
            self._metrics[declared.LAG].labels(of).set(account.lag_s)
            self._metrics[declared.MINUTES].labels(of).set(account.replica_s / 60)
            self._metrics[declared.LATE].labels(of).set(account.late_s)

    def _record(self, entry: JournalEntry) -> None:
        assert isinstance(entry, TickRecord)
        self._live.record(entry)
        self._metrics[declared.DECISIONS].labels(entry.action).inc()
        waiting = f"waiting for the {entry.missing}" if entry.missing else ""
        self._problems.report("comparison", waiting, after=PERSISTENT_TICKS)

    def _page(self) -> dict[str, Any]:
        plan = self._group.plan
        return {
            "summary": self.summary(),
            "would_be": {"replicas": plan.replicas, "assignment": plan.assignment and dict(plan.assignment)},
        }


if __name__ == "__main__":
    sys.exit(main())
