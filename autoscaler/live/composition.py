"""Construction, run and shutdown of one live autoscaler."""

import gc
import logging
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from autoscaler.controller import Controller
from autoscaler.live import observed_group
from autoscaler.live.acting import Acting
from autoscaler.live.conditions import Conditions, ScaleUps
from autoscaler.live.configuration import StartupConfig, policy_config_of
from autoscaler.live.hold_reader import ActChangedError, HoldReader
from autoscaler.live.journal import JournalTopic, LiveJournal
from autoscaler.live.kafka import topic_exists
from autoscaler.live.launcher import Launcher, of_extra
from autoscaler.live.launchers.processes import ProcessLauncher
from autoscaler.live.loop import STEP_S, Loop, run_beside, warm_up_policy
from autoscaler.live.metrics import INFO, LAST_TICK, LEADING, REBALANCE_TIME, STATUS, TICK, Metrics
from autoscaler.live.observed_group import ObservedGroup
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.plan_log import FencedError
from autoscaler.live.problems import PERSISTENT_TICKS, Problems
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.web import Source, serving
from autoscaler.live.windows import in_windows
from autoscaler.page.feed import EntryFeed
from autoscaler.policies.guards.holds import Held
from autoscaler.ports import NotReadyError
from contracts.children import python_module
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.holds import Direction, Hold
from contracts.journal import JournalEntry
from contracts.topics import Topic
from contracts.waiting import Stop

log = logging.getLogger("autoscaler")
ANY_PORT: Final = "-1"
LEAVE_S: Final = 90.0
"""Time after which another value of `act` applies although a plan is not carried out, or a replica has not stopped."""
MAX_MISSED_TICKS: Final = 3
"""Decision intervals without a tick after which the health page answers 503."""


def launcher_from(
    settings: AutoscalerSettings, environ: Mapping[str, str], why_not_leading: Callable[[], str] = str
) -> Launcher:
    """Return the launcher. Its replicas accept any number of partitions, because the topic may grow.

    why_not_leading: returns why this autoscaler may not act now; empty: it leads. Raises LauncherError.
    """
    if settings.launcher in ("kubernetes", "keda"):
        with of_extra("kubernetes"):
            from autoscaler.live.launchers.api import Api  # noqa: PLC0415
            from autoscaler.live.launchers.kubernetes import KubernetesLauncher  # noqa: PLC0415
        return KubernetesLauncher(Api(settings), why_not_leading, by_plan=settings.launcher == "keda")
    command = shlex.split(settings.replica_command) or python_module(settings.replica_module)
    http_port = ANY_PORT if settings.http_port else "0"
    environ = {**environ, "TAILPACK_PAYMENT_PARTITIONS": "0", "TAILPACK_HTTP_PORT": http_port}
    return ProcessLauncher(Path(settings.state_dir), command, environ)


class LiveAutoscaler:
    """One controller with its Kafka clients, launcher, pages and journal."""

    def __init__(
        self, config: StartupConfig, launcher: Launcher | None, stop: Stop, holds: HoldReader | None, stack: ExitStack,
        *, warn: Callable[[str], None],
    ) -> None:  # fmt: skip
        """Bind the port, then take over the plan log. No decision is made and no replica started yet.

        The order matters: an autoscaler that cannot run must not fence the one that runs.
        warn: called with log lines for an operator. launcher: None unless the autoscaler acts. stack: closes the port.
        Raises PortTakenError, FencedError, PlanNotWrittenError, NotReadyError and KafkaException.
        """
        settings, connection = config.settings, config.connection
        self._settings, self._stop, self._holds, self._leave_by_s = settings, stop, holds, math.inf
        self._metrics = Metrics()
        self._problems = Problems(warn, self._metrics.set_condition)
        head = {
            "title": settings.group_in(connection.namespace), "percentile": settings.percentile,
            "phase": "running" if settings.acts else "observing",
        }  # fmt: skip
        page = EntryFeed(
            settings.latency_target_s,
            reports=lambda: self._acting.reports() if self._acting else [],
            more=lambda: {**head, "hold": str(holds or "")},
        )
        show = self._metrics[STATUS].labels
        self._conditions = Conditions(settings.act, settings, lambda kind, value: show(kind).set(value))
        self._scale_ups = ScaleUps(reverts=settings.revert_in_vain)
        source = Source(
            last_tick=lambda: self._loop.last_tick(),  # noqa: PLW0108  created below
            plan=lambda: self._group.page(),  # noqa: PLW0108
            decisions=lambda limit: list(self._decisions.recent)[: -limit - 1 : -1],
            registry=self._metrics.registry,
            tick_limit_s=MAX_MISSED_TICKS * settings.decision_interval_s,
            problems=lambda: self._problems.current,
            unhealthy_reason=lambda: self._problems.unhealthy_reason,
            conditions=lambda: self._conditions.current,
            targets=lambda: self._acting.targets() if self._acting else [],
            hold=lambda: str(holds or ""),
            live=page.feed,
        )
        self._show = stack.enter_context(serving(source, settings))
        self._journal = self._journal_if_allowed(connection)
        write = self._journal.record if self._journal else self._metrics.count_entry

        def record(entry: JournalEntry) -> None:
            page.record(entry)
            write(entry)

        self._offsets = OffsetReader.of(
            connection, settings, settings.decision_interval_s,
            partitions=settings.payment_partitions, is_foreign=settings.is_foreign or not settings.acts,
        )  # fmt: skip
        policy, prefix = config.policy, settings.replica_prefix
        if settings.revert_in_vain:
            reverting, rail = self._scale_ups.restriction, "revert_in_vain"
            policy = Held(policy, hold=reverting, limits=settings, replica_prefix=prefix, rail=rail)
        policy = in_windows(policy, settings.windows, settings.time_zone, settings, prefix)
        self._acting: Acting | None = None
        self._group: Any
        if launcher is not None and holds is not None:
            self._acting = Acting(
                connection, settings, launcher, self._offsets, holds,
                record=record, problems=self._problems, metrics=self._metrics, warn=warn,
            )  # fmt: skip
            self._group, policy = self._acting.group, self._acting.limit(policy)
            # alerts count who acts: an observer is no autoscaler of the group
            self._metrics[INFO].labels(settings.group_in(connection.namespace), policy.name).set(1)
        else:
            of = connection, settings, self._offsets, self._problems
            self._group = ObservedGroup.of(*of, may_replace=bool(holds and holds.order))
            self._metrics.add(vars(observed_group).values())
        self._decisions = LiveJournal(
            record, self._group.status, policy.name, self._problems, act=settings.act, say=log.info
        )
        self._decisions.observed = self._conditions.observe
        self._controller = Controller(self._group, policy, self._decisions)
        steps = round(PERSISTENT_TICKS * settings.decision_interval_s / STEP_S)
        self._run_step = partial(self._problems.run_step, fatal=FencedError)
        self._advance = partial(self._run_step, "advance", self._group.advance, unhealthy_after=steps)
        self._loop = Loop(
            self._tick,
            self._advance,
            interval_s=settings.decision_interval_s,
            offset_s=settings.tick_offset_s,
            stop=stop,
            urgent=partial(self._problems.query, "watch", self._controller.urgent, fatal=FencedError),
            on_clock_jump=self._report_clock_jump,
        )

    def run(self) -> None:
        """Decide and act until `stop` is set. Raises ActChangedError, and FencedError if another has taken over."""
        self._metrics[LEADING].set(self._settings.acts)
        self._show()  # everything that the pages need exists now
        prefix = self._settings.replica_prefix
        self._group.start(tuple(f"{prefix}-{ordinal}" for ordinal in range(self._settings.initial_replicas)))
        throw_away, interval_s = policy_config_of(self._settings).policy(), self._settings.decision_interval_s
        partitions = max(1, self._offsets.partitions)  # without a broker, their number is unknown
        warm_up = partial(warm_up_policy, throw_away, partitions, interval_s, self._stop.is_set)
        if self._acting:  # replicas that have started serve meanwhile
            run_beside(warm_up, self._advance)
        else:
            warm_up()  # not in a thread, so a signal ends it at once
        gc.freeze()  # to scan imports and compiled code again would take longer than a decision
        self._loop.run()

    def stop_replicas(self) -> None:
        """Stop every replica and wait until all have exited. Each commits and leaves the group. The plan stays."""
        if self._acting:
            self._acting.stop_replicas()

    def summary(self) -> str:
        """Return what observing the group showed; empty if this autoscaler acts."""
        return "" if self._acting else self._group.summary()

    def close(self) -> int:
        """Close all clients. Returns the number of journal records that were lost."""
        gc.unfreeze()
        if self._acting:
            order = self._holds.order if self._holds else None
            is_kept = order is not None and order.direction is Direction.OFF  # by keep_owners
            self._acting.close(leave=self._leave_by_s < math.inf and not is_kept)
        self._offsets.close()
        return self._journal.close() if self._journal else 0

    def _journal_if_allowed(self, connection: Connection) -> JournalTopic | None:
        """Return the journal; None if the autoscaler only observes, and the topic does not exist or is not shown."""
        settings = self._settings
        if not settings.acts and not topic_exists(connection, Topic.JOURNAL, "decisions are kept in memory only"):
            return None
        if self._holds is not None:  # one journal, whatever is ordered
            settings = replace(settings, act=self._holds.configured)
        key = settings.journal_key(connection.namespace)
        return JournalTopic(connection, key, self._metrics, partial(self._problems.report, "journal"))

    def _report_clock_jump(self, by_s: float) -> None:
        jump = f"wall clock jumped by {by_s:+.1f} s (ignored: decisions use the monotonic clock)" if by_s else ""
        self._problems.report("clock", jump)

    def _leave(self, order: Hold | None) -> None:
        """Raise ActChangedError once nothing is half carried out. Until then, nothing is decided."""
        self._leave_by_s = min(self._leave_by_s, monotonic_s() + LEAVE_S)
        if self._acting is None or self._acting.group.withdraw() or monotonic_s() > self._leave_by_s:
            raise ActChangedError(order)

    def _tick(self) -> None:
        holds, present = self._holds, self._settings.act
        if holds is not None and holds.act(present) != present:
            self._leave(holds.order)
            return
        self._leave_by_s = math.inf
        with self._metrics[TICK].time():
            failure = self._run_step("tick", self._controller.tick, unhealthy_after=PERSISTENT_TICKS)
        if failure:
            self._decisions.record_not_ready(NotReadyError(failure))
        self._metrics[LEADING].set(self._group.leads)
        tick = self._decisions.recent[-1]
        if holds is not None:
            self._problems.report("holds", holds.problem)
            self._metrics.set_holds(holds.shown, holds.order)
        if self._acting:
            self._scale_ups.observe(tick)
            self._problems.report("scale-ups", self._scale_ups.problem)
        else:
            waiting = f"waiting for the {tick.missing}" if tick.missing else ""
            self._problems.report("comparison", waiting, after=PERSISTENT_TICKS)
            self._group.after_tick(self._metrics)
        held = (holds.shown or holds.order) if holds else None
        self._conditions.update(tick, held, self._problems.current, leads=self._group.leads)
        self._metrics[REBALANCE_TIME].set(self._group.rebalance_time_s)
        self._metrics[LAST_TICK].set_to_current_time()
