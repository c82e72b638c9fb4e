"""The part of an autoscaler that carries plans out. With `act = off`, it is missing."""

import math
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Final

from autoscaler.estimation.rebalance_time import RebalanceTime
from autoscaler.estimation.service_rates import ServiceRates
from autoscaler.live.group import LiveGroup
from autoscaler.live.hold_reader import HoldReader, annotated_hold
from autoscaler.live.kafka import DEADLINE_S
from autoscaler.live.launcher import Launcher
from autoscaler.live.loads import LoadReader
from autoscaler.live.loop import STEP_S
from autoscaler.live.metrics import PLAN_ADOPTION, Metrics
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.plan_log import PlanLog, read_plans
from autoscaler.live.problems import Problems
from autoscaler.live.progress_reader import PlanAdoption, ProgressReader
from autoscaler.live.publisher import Publisher
from autoscaler.live.replica import STOP_MARGIN_S, Timeouts
from autoscaler.live.replicas import ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.guards.holds import Held
from autoscaler.ports import Policy
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.journal import JournalEntry
from contracts.progress import Progress
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.waiting import WaitTimeoutError, until

STOP_SLACK_S: Final = 2.0
"""Extra wait at a clean shutdown, after the last replica's SIGKILL."""
EXTERNAL_STOP_S: Final = 45.0
"""Extra time to stop a replica if the HPA deletes pods. It acts every 15 s. After 30 s the launcher deletes the pod."""


class Acting:
    """Carries plans out: the plan log, the replicas and their reports, and the holds of operators."""

    def __init__(
        self,
        connection: Connection,
        settings: AutoscalerSettings,
        launcher: Launcher,
        offsets: OffsetReader,
        holds: HoldReader,
        *,
        record: Callable[[JournalEntry], None],
        problems: Problems,
        metrics: Metrics,
        warn: Callable[[str], None],
    ) -> None:
        """Count the partitions, then take over the plan log. See LiveAutoscaler."""
        self._settings, self._launcher = settings, launcher
        limits = settings.min_replicas, settings.max_replicas
        self._holds = holds
        holds.annotated = lambda: annotated_hold(getattr(launcher, "annotations", {}), *limits)
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
            record,
            timeouts=Timeouts(stop_s=settings.drain_s + STOP_MARGIN_S + external_s),
            joins_warm=obeys_plans and settings.rebalance_protocol is RebalanceProtocol.INCREMENTAL,
            obeys_plans=obeys_plans,
            is_source=lambda one, of: one.identity == of.incarnation if settings.is_foreign else one.is_source_of(of),
        )
        offsets.count_partitions(DEADLINE_S)
        adoption_limit_s = settings.taken_within_s if obeys_plans else math.inf
        publisher = Publisher(
            PlanLog(connection, settings),
            self._scaler,
            record,
            monotonic_s,
            adoption=PlanAdoption(adoption_limit_s, monotonic_s, metrics[PLAN_ADOPTION].observe),
            report_problem=partial(problems.report, "plans"),
            grace_s=settings.absence_grace_s,
        )
        loads = LoadReader(offsets)
        loads.shares = self._reports.record_shares
        self.group: LiveGroup = of_kind(
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
            report_problem=problems.report,
        )

    def targets(self) -> list[str]:
        """Return HOST:PORT of the replicas' metrics."""
        return self._reports.metric_addresses()  # type: ignore[no-any-return]

    def reports(self) -> list[Progress]:
        """Return the newest progress reports of running replicas."""
        return self._reports.recent()  # type: ignore[no-any-return]

    def limit(self, policy: Policy) -> Policy:
        """Return the policy inside the guard that carries out holds."""
        settings = self._settings
        return Held(policy, hold=self._holds.restriction, limits=settings, replica_prefix=settings.replica_prefix)

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

    def close(self, *, leave: bool) -> None:
        """Close all clients. leave: also leave a group that this autoscaler leads, for another leader."""
        self._launcher.close()
        if leave and self._settings.is_foreign:
            self._reports.close(leave=True)
        self._reports.close()


def keep_owners(
    connection: Connection, settings: AutoscalerSettings, launcher: Launcher, notify: Callable[[str], None]
) -> Any:
    """Lead a group of other consumers by the plan in force, and do nothing else. Return the membership, to be closed.

    The partitions of a replica that dies go to the others once its session has ended. launcher: is read and closed.
    Raises PlanNotWrittenError and LauncherError.
    """
    from autoscaler.live.foreign.members import Replicas  # noqa: PLC0415  as above
    from autoscaler.live.foreign.reports import LedReports  # noqa: PLC0415

    with closing(launcher):
        found = [orphan for orphan in launcher.find_orphans() if orphan.instance.exit() is None]
    plan = read_plans(connection, settings, DEADLINE_S).newest
    leader = LedReports(connection, replace(settings, take_over="wait"), notify).leader
    leader.carry_out(plan, Replicas({orphan.name: orphan.instance.address for orphan in found}))
    leader.start()
    return leader
