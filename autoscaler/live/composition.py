"""Construction, run and shutdown of one live autoscaler."""

import gc
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from autoscaler.controller import Controller
from autoscaler.estimation.rebalance_time import RebalanceTime
from autoscaler.estimation.service_rates import ServiceRates
from autoscaler.live.group import LiveGroup
from autoscaler.live.hold_reader import HoldReader
from autoscaler.live.journal import JournalTopic, LiveJournal
from autoscaler.live.kafka import DEADLINE_S
from autoscaler.live.launcher import Launcher, of_extra
from autoscaler.live.launchers.processes import ProcessLauncher
from autoscaler.live.loads import LoadReader
from autoscaler.live.loop import STEP_S, Loop, warm_up_policy
from autoscaler.live.metrics import LAST_TICK, LEADING, PLAN_ADOPTION, REBALANCE_TIME, TICK, Metrics
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.plan_log import FencedError, PlanLog
from autoscaler.live.problems import PERSISTENT_TICKS, Problems
from autoscaler.live.progress_reader import PlanAdoption, ProgressReader
from autoscaler.live.publisher import Publisher
from autoscaler.live.replica import STOP_MARGIN_S, Timeouts
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.web import Source, serving
from autoscaler.page.feed import EntryFeed
from autoscaler.policies.guards.holds import Held
from autoscaler.policies.registry import PolicyConfig
from autoscaler.ports import NotReadyError, Policy
from contracts.children import python_module
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.journal import JournalEntry
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.waiting import Stop, WaitTimeoutError, until

ANY_PORT: Final = "-1"
STOP_SLACK_S: Final = 2.0
"""Extra wait at a clean shutdown, after the last replica's SIGKILL."""
EXTERNAL_STOP_S: Final = 45.0
"""Extra time to stop a replica if the HPA deletes pods. It acts every 15 s. After 30 s the launcher deletes the pod."""
MAX_MISSED_TICKS: Final = 3
"""Decision intervals without a tick after which the health page answers 503."""


def policy_config_of(settings: AutoscalerSettings) -> PolicyConfig:
    """Return the configuration of the policy. Raises ValueError."""
    return PolicyConfig(settings, settings, settings, settings.options(), bool(settings.runtime))


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


@dataclass(frozen=True, slots=True)
class StartupConfig:
    """The whole configuration of an autoscaler."""

    settings: AutoscalerSettings
    connection: Connection
    policy: Policy
    environ: Mapping[str, str]
    """Environment of the replicas: this process's own, plus the settings of the file."""


class LiveAutoscaler:
    """One controller with its Kafka clients, launcher, pages and journal."""

    def __init__(self, config: StartupConfig, launcher: Launcher, stop: Stop, *, warn: Callable[[str], None]) -> None:
        """Bind the port, then take over the plan log. No decision is made and no replica started yet.

        The order matters: an autoscaler that cannot run must not fence the one that runs.
        warn: called with log lines for an operator.
        Raises PortTakenError, FencedError, PlanNotWrittenError, NotReadyError and KafkaException.
        """
        settings, connection = config.settings, config.connection
        self._settings, self._stop, self._launcher, self._connection = settings, stop, launcher, connection
        self._metrics = Metrics()
        self._problems = Problems(warn, self._metrics.set_condition)
        self._page = EntryFeed(
            settings.latency_target_s,
            settings.payment_partitions,
            reports=lambda: self._reports.recent(),  # noqa: PLW0108  created below
            more=self._describe,
        )
        source = Source(
            last_tick=lambda: self._loop.last_tick(),  # noqa: PLW0108  created below
            plan=lambda: self._group.page(),  # noqa: PLW0108
            decisions=lambda limit: list(self._decisions.recent)[: -limit - 1 : -1],
            registry=self._metrics.registry,
            tick_limit_s=MAX_MISSED_TICKS * settings.decision_interval_s,
            problems=lambda: self._problems.current,
            unhealthy_reason=lambda: self._problems.unhealthy_reason,
            targets=lambda: self._reports.metric_addresses(),  # noqa: PLW0108
            hold=lambda: str(self._holds.shown or ""),
            live=self._page.feed,
        )
        self._pages = ExitStack()
        self._show = self._pages.enter_context(serving(source, settings))
        self._journal = JournalTopic(connection, settings, self._metrics, partial(self._problems.report, "journal"))
        self._holds = HoldReader(connection, settings, warn=warn)
        prefix = settings.replica_prefix
        policy = Held(config.policy, hold=self._holds.restriction, limits=settings, replica_prefix=prefix)
        interval_s, partitions = settings.decision_interval_s, settings.payment_partitions
        self._reports: Any
        of_kind: Any = LiveGroup
        if settings.is_foreign:
            from autoscaler.live.foreign.group import LedGroup  # noqa: PLC0415  imports aiokafka
            from autoscaler.live.foreign.reports import LedReports  # noqa: PLC0415

            of_kind, self._reports = LedGroup, LedReports(connection, settings, warn)
        else:
            self._reports = ProgressReader(connection, settings)
        obeys_plans = not settings.runtime
        external_s = EXTERNAL_STOP_S if settings.launcher == "keda" else 0.0
        self._scaler = ReplicaScaler(
            launcher,
            self._record,
            timeouts=Timeouts(stop_s=settings.drain_s + STOP_MARGIN_S + external_s),
            joins_warm=obeys_plans and settings.rebalance_protocol is RebalanceProtocol.INCREMENTAL,
            obeys_plans=obeys_plans,
            is_source=lambda one, of: one.identity == of.incarnation if settings.is_foreign else one.is_source_of(of),
        )
        self._metrics.set_group(settings.group_in(connection.namespace), policy.name, settings)
        self._offsets = OffsetReader.of(
            connection, settings, interval_s, partitions=partitions, is_foreign=settings.is_foreign
        )
        self._offsets.count_partitions(DEADLINE_S)
        adoption_limit_s = settings.taken_within_s if obeys_plans else math.inf
        publisher = Publisher(
            PlanLog(connection, settings),
            self._scaler,
            self._record,
            monotonic_s,
            adoption=PlanAdoption(adoption_limit_s, monotonic_s, self._metrics[PLAN_ADOPTION].observe),
            report_problem=partial(self._problems.report, "plans"),
            grace_s=settings.absence_grace_s,
        )
        loads = LoadReader(self._offsets)
        loads.shares = self._reports.record_shares
        self._group: LiveGroup = of_kind(
            settings,
            loads=loads,
            reports=self._reports,
            publisher=publisher,
            scaler=self._scaler,
            service_rates=ServiceRates(settings.service_rate),
            rebalance_time=RebalanceTime(
                settings.rebalance_time_s,
                learn=settings.learn_rebalance_time,
                latency_target_s=settings.latency_target_s,
                warn=warn,
            ),
            report_problem=self._problems.report,
        )
        self._decisions = LiveJournal(self._record, self._group.status, policy.name, self._problems)
        self._controller = Controller(self._group, policy, self._decisions)
        steps = round(PERSISTENT_TICKS * settings.decision_interval_s / STEP_S)
        self._run_step = partial(self._problems.run_step, fatal=FencedError)
        self._loop = Loop(
            self._tick,
            partial(self._run_step, "advance", self._group.advance, unhealthy_after=steps),
            interval_s=settings.decision_interval_s,
            offset_s=settings.tick_offset_s,
            stop=stop,
            urgent=partial(self._problems.query, "watch", self._controller.urgent, fatal=FencedError),
            on_clock_jump=self._report_clock_jump,
        )

    def run(self) -> None:
        """Decide and act until `stop` is set. Raises FencedError when another autoscaler has taken over."""
        self._metrics[LEADING].set(1)
        self._show()  # everything that the pages need exists now
        prefix = self._settings.replica_prefix
        self._group.start(tuple(f"{prefix}-{ordinal}" for ordinal in range(self._settings.initial_replicas)))
        throw_away, interval_s = policy_config_of(self._settings).policy(), self._settings.decision_interval_s
        warm_up_policy(throw_away, self._offsets.partitions, interval_s, self._stop.is_set)  # while replicas start
        gc.freeze()  # to scan imports and compiled code again would take longer than a decision
        self._loop.run()

    def stop_replicas(self) -> None:
        """Stop every replica and wait until all have exited. Each commits and leaves the group. The plan stays."""
        self._scaler.stop_all()

        def all_exited() -> bool:
            self._scaler.reconcile(self._reports.poll())
            return not self._scaler.instances

        with suppress(WaitTimeoutError):  # an adopted replica is no child process, so its exit may go unnoticed
            until(all_exited, self._settings.drain_s + STOP_MARGIN_S + STOP_SLACK_S, "all replicas have ended", STEP_S)
        if self._settings.is_foreign:
            self._reports.close(leave=True)

    def close(self) -> int:
        """Close all clients. Returns the number of journal records that were lost."""
        self._pages.close()
        self._launcher.close()
        self._reports.close()
        self._offsets.close()
        self._holds.close()
        return self._journal.close()

    def _record(self, entry: JournalEntry) -> None:
        self._page.record(entry)
        self._journal.record(entry)

    def _describe(self) -> dict[str, Any]:
        """Return the head of the live page."""
        hold, group = str(self._holds.shown or ""), self._settings.group_in(self._connection.namespace)
        return {"title": group, "phase": hold or "running", "hold": hold, "percentile": self._settings.percentile}

    def _report_clock_jump(self, by_s: float) -> None:
        jump = f"wall clock jumped by {by_s:+.1f} s (ignored: decisions use the monotonic clock)" if by_s else ""
        self._problems.report("clock", jump)

    def _tick(self) -> None:
        with self._metrics[TICK].time():
            failure = self._run_step("tick", self._controller.tick, unhealthy_after=PERSISTENT_TICKS)
        if failure:
            self._decisions.record_not_ready(NotReadyError(failure))
        self._metrics[LEADING].set(self._group.leads)
        self._problems.report("holds", self._holds.problem)
        self._metrics.set_hold(self._holds.shown)
        self._metrics[REBALANCE_TIME].set(self._group.rebalance_time_s)
        self._metrics[LAST_TICK].set_to_current_time()
