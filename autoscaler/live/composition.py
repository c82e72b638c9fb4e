"""Puts the live autoscaler together and takes it apart again."""

import gc
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event
from typing import Final

from autoscaler.controller import Controller
from autoscaler.estimation.rebalance_time import RebalanceTime
from autoscaler.estimation.service_rates import ServiceRates
from autoscaler.live.group import LiveGroup
from autoscaler.live.journal import JournalTopic, LiveJournal
from autoscaler.live.launcher import Launcher, of_extra
from autoscaler.live.launchers.processes import ProcessLauncher
from autoscaler.live.loads import LoadReader
from autoscaler.live.loop import STEP_S, Loop, warm_up_policy
from autoscaler.live.metrics import LAST_TICK, LEADING, PLAN_ADOPTION, REBALANCE_TIME, TICK, Metrics
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.plan_log import FencedError, PlanLog
from autoscaler.live.progress_reader import ProgressReader, Uptake
from autoscaler.live.publisher import Publisher
from autoscaler.live.replicas import STOP_MARGIN_S, Patience, ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.troubles import LASTING, Troubles
from autoscaler.live.web import Source, serving
from autoscaler.policies.registry import PolicyConfig
from autoscaler.ports import NotReadyError, Policy
from contracts.children import python_module
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.waiting import WaitTimeoutError, until

ANY_PORT: Final = "-1"
STOP_SLACK_S: Final = 2.0
"""At a clean stop, beyond the longest that a replica has before SIGKILL."""
STOPPED_BY_OTHERS_S: Final = 45.0
"""Beyond that, where KEDA and the HPA stop replicas: they look every 15 s, and after 30 s a pod is deleted directly."""
TICKS_MISSED: Final = 3
"""After so many intervals without a tick the health page says so."""


def policy_from(settings: AutoscalerSettings) -> Policy:
    """Return the policy inside its guards. Raises ValueError."""
    return asked_of(settings).policy()


def asked_of(settings: AutoscalerSettings) -> PolicyConfig:
    """Return the policy that the settings ask for. Raises ValueError."""
    return PolicyConfig(settings, settings, settings, settings.options(), bool(settings.runtime))


def launcher_from(
    settings: AutoscalerSettings, environ: Mapping[str, str], why_not: Callable[[], str] = str
) -> Launcher:
    """Return what starts replicas. They are not held to a number of partitions: the topic may have grown since.

    why_not: why we may not act now, as we do not lead; empty: we may. Raises LauncherError.
    """
    if settings.launcher in ("kubernetes", "keda"):
        with of_extra("kubernetes"):
            from autoscaler.live.launchers.api import api_from  # noqa: PLC0415
            from autoscaler.live.launchers.kubernetes import KubernetesLauncher  # noqa: PLC0415
        return KubernetesLauncher(api_from(settings), why_not, by_plan=settings.launcher == "keda")
    command = shlex.split(settings.replica_command) or python_module(settings.replica_module)
    environ = {
        **environ,
        "TAILPACK_PAYMENT_PARTITIONS": "0",
        "TAILPACK_HTTP_PORT": ANY_PORT if settings.http_port else "0",
    }
    return ProcessLauncher(Path(settings.state_dir), command, environ)


@dataclass(frozen=True, slots=True)
class StartupConfig:
    """The whole configuration of an autoscaler."""

    settings: AutoscalerSettings
    connection: Connection
    policy: Policy
    environ: Mapping[str, str]
    """Of its replicas: this process's own, with the settings of a file."""


class LiveAutoscaler:
    """One controller with everything around it."""

    def __init__(self, config: StartupConfig, launcher: Launcher, stop: Event, *, warn: Callable[[str], None]) -> None:
        """Bind the port, then take over the plan log; nothing is decided or started yet.

        In this order: an autoscaler that cannot run must not fence the one that runs.
        warn: called with sentences for an operator.
        Raises PortTakenError, FencedError, PlanNotWrittenError, NotReadyError and KafkaException.
        """
        settings, connection, policy = config.settings, config.connection, config.policy
        self._settings, self._stop, self._launcher = settings, stop, launcher
        self._metrics = Metrics()
        self._troubles = Troubles(warn, self._metrics.flag)
        source = Source(
            last_tick=lambda: self._loop.last_tick(),  # noqa: PLW0108  made below, as the next ones
            plan=lambda: self._group.page(),  # noqa: PLW0108
            decisions=lambda limit: list(self._journal.recent)[: -limit - 1 : -1],
            registry=self._metrics.registry,
            tick_limit_s=TICKS_MISSED * settings.decision_interval_s,
            troubles=lambda: self._troubles.now,
            unwell=lambda: self._troubles.unwell,
            targets=lambda: self._reports.pages(),  # noqa: PLW0108
        )
        self._pages = ExitStack()
        self._show = self._pages.enter_context(serving(source, settings))
        self._journal = JournalTopic(connection, self._metrics, partial(self._troubles.tell, "journal"))
        self._reports = ProgressReader(connection)
        ours, others_s = not settings.runtime, STOPPED_BY_OTHERS_S if settings.launcher == "keda" else 0.0
        self._scaler = ReplicaScaler(
            launcher,
            self._journal.record,
            patience=Patience(stop_s=settings.drain_s + STOP_MARGIN_S + others_s),
            joins_warm=ours and settings.rebalance_protocol is RebalanceProtocol.INCREMENTAL,
            obeys_plans=ours,
        )
        group = settings.group_in(connection.namespace)
        self._metrics.about(group, policy.name, settings)
        self._offsets = OffsetReader.of(connection, settings, settings.decision_interval_s, settings.payment_partitions)
        if not settings.payment_partitions:
            self._offsets.count()
        within_s = settings.taken_within_s if ours else math.inf
        publisher = Publisher(
            PlanLog(connection, group),
            self._scaler,
            self._journal.record,
            monotonic_s,
            uptake=Uptake(within_s, monotonic_s, self._metrics[PLAN_ADOPTION].observe),
            trouble=partial(self._troubles.tell, "plans"),
            grace_s=settings.absence_grace_s,
        )
        rates = ServiceRates(settings.service_rate)
        self._group = LiveGroup(
            settings,
            loads=LoadReader(self._offsets),
            reports=self._reports,
            publisher=publisher,
            scaler=self._scaler,
            service_rates=rates,
            rebalance_time=RebalanceTime(
                settings.rebalance_time_s,
                learn=settings.learn_rebalance_time,
                latency_target_s=settings.latency_target_s,
                warn=warn,
            ),
            trouble=self._troubles.tell,
        )
        self._decisions = LiveJournal(self._journal.record, self._group.status, policy.name, self._troubles)
        self._controller = Controller(self._group, policy, self._decisions)
        lasting = round(LASTING * settings.decision_interval_s / STEP_S)
        step = partial(self._troubles.survived, "advance", self._group.advance, fatal=FencedError, unwell_after=lasting)
        self._loop = Loop(
            self._tick,
            step,
            interval_s=settings.decision_interval_s,
            offset_s=settings.tick_offset_s,
            stop=stop,
            urgent=partial(self._troubles.asked, "watch", self._controller.urgent, fatal=FencedError),
            stepped=self._clock_stepped,
        )

    def run(self) -> None:
        """Decide and act until told to stop. Raises FencedError when another controller has taken over."""
        self._metrics[LEADING].set(1)
        self._show()  # from here on everything that the pages ask for is there
        prefix = self._settings.replica_prefix
        self._group.start(tuple(f"{prefix}-{ordinal}" for ordinal in range(self._settings.initial_replicas)))
        warm_up_policy(  # while the first replicas start
            policy_from(self._settings),
            partitions=self._offsets.partitions,
            service_rate=self._settings.service_rate,
            interval_s=self._settings.decision_interval_s,
            done=self._stop.is_set,
        )
        gc.freeze()  # what was imported and compiled stays: looking through it again takes longer than a decision
        self._loop.run()

    def stop_replicas(self) -> None:
        """Stop every replica and wait until all are gone; each gives back what it owns. The plan stays in force."""
        self._scaler.stop_all()

        def gone() -> bool:
            self._scaler.reconcile(self._reports.poll())
            return not self._scaler.running

        with suppress(WaitTimeoutError):  # replicas that are not our children (adopted) signal nothing when they end
            until(gone, self._settings.drain_s + STOP_MARGIN_S + STOP_SLACK_S, "all replicas have ended", STEP_S)

    def close(self) -> int:
        """Leave the brokers. Returns how many journal entries were lost."""
        self._pages.close()
        self._launcher.close()
        self._reports.close()
        self._offsets.close()
        return self._journal.close()

    def _clock_stepped(self, by_s: float) -> None:
        said = f"the wall clock was set by {by_s:+.1f} s; nothing that is decided rests on it" if by_s else ""
        self._troubles.tell("clock", said)

    def _tick(self) -> None:
        with self._metrics[TICK].time():
            failed = self._troubles.survived("tick", self._controller.tick, fatal=FencedError, unwell_after=LASTING)
        if failed:
            self._decisions.record_not_ready(NotReadyError(failed))
        self._metrics[REBALANCE_TIME].set(self._group.rebalance_time_s)
        self._metrics[LAST_TICK].set_to_current_time()
