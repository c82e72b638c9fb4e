"""Puts the live autoscaler together and takes it apart again."""

import gc
import math
import shlex
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any, Final

from confluent_kafka import Consumer

from autoscaler.controller import Controller
from autoscaler.estimation.service_rates import ServiceRates
from autoscaler.live.group import LiveGroup
from autoscaler.live.journal import JournalTopic, LiveJournal
from autoscaler.live.kafka import client
from autoscaler.live.launcher import Launcher, of_extra
from autoscaler.live.launchers.processes import ProcessLauncher
from autoscaler.live.loads import LoadReader
from autoscaler.live.loop import STEP_S, Loop, rehearse
from autoscaler.live.metrics import Metrics
from autoscaler.live.offsets import OffsetReader
from autoscaler.live.plan_log import FencedError, PlanLog
from autoscaler.live.progress_reader import ProgressReader
from autoscaler.live.publisher import Publisher
from autoscaler.live.rebalances import Rebalances
from autoscaler.live.replicas import STOP_MARGIN_S, Patience, ReplicaScaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.state_dir import LearnedTimes
from autoscaler.live.troubles import LASTING, Troubles, Watched
from autoscaler.live.uptake import Uptake
from autoscaler.live.web import Source, serving
from autoscaler.policies.registry import Asked
from autoscaler.ports import NotReadyError, Policy
from contracts.children import python_module
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.delivery import Delivery
from contracts.waiting import NotWithinError, until

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


def asked_of(settings: AutoscalerSettings) -> Asked:
    """Return the policy that the settings ask for. Raises ValueError."""
    options, counts_only = settings.options(), bool(settings.runtime)
    return Asked(settings, settings, settings, options, counts_only, classes=settings.replica_classes)


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


def _scaler(settings: AutoscalerSettings, launcher: Launcher, journal: JournalTopic) -> ReplicaScaler:
    """Return the scaler of the replicas that the settings ask for."""
    ours = not settings.runtime
    others_s = STOPPED_BY_OTHERS_S if settings.launcher == "keda" else 0.0
    return ReplicaScaler(
        launcher,
        journal.record,
        patience=Patience(stop_s=settings.drain_s + STOP_MARGIN_S + others_s),
        joins_warm=ours and settings.delivery is Delivery.INCREMENTAL,
        obeys_plans=ours,
    )


class LiveAutoscaler:
    """One controller with everything around it."""

    def __init__(
        self,
        settings: AutoscalerSettings,
        connection: Connection,
        policy: Policy,
        environ: Mapping[str, str],
        stop: Event,
        *,
        warn: Callable[[str], None],
        launcher: Launcher | None = None,
    ) -> None:
        """Bind the port, then take over the plan log; nothing is decided or started yet.

        In this order: what cannot run must not fence the one that runs.
        warn: called with sentences that an operator should read. launcher: starts the replicas; None: as the settings
        say.
        Raises PortTakenError, FencedError, PlanNotWrittenError, NotReadyError, LauncherError and KafkaException.
        """
        self._settings = settings
        self._stop = stop
        self._warn = warn
        self._metrics = Metrics()
        self._troubles = Troubles(warn, self._metrics.flag)
        source = Source(
            last_tick=lambda: self._loop.last_tick(),  # noqa: PLW0108  the loop is made after it
            plan=self._plan,
            decisions=lambda limit: list(self._journal.recent)[: -limit - 1 : -1],
            registry=self._metrics.registry,
            tick_limit_s=TICKS_MISSED * settings.decision_interval_s,
            troubles=lambda: self._troubles.now,
            unwell=lambda: self._troubles.unwell,
            targets=lambda: self._reports.pages(),  # noqa: PLW0108  the reader is made after it
        )
        self._pages = ExitStack()
        self._show = self._pages.enter_context(serving(source, settings))
        self._journal = JournalTopic(connection, self._metrics, partial(self._troubles.tell, "journal"))
        self._reports = ProgressReader(connection)
        self._launcher = launcher or launcher_from(settings, environ)
        self._scaler = _scaler(settings, self._launcher, self._journal)
        group = settings.group_in(connection.namespace)
        self._metrics.about(group, policy.name, settings)
        self._offsets = OffsetReader(
            lambda: Consumer(client(connection, group_id=group, enable_auto_commit=False)),
            topic=settings.topic_in(connection.namespace),
            partitions=settings.payment_partitions,
            deadline_s=min(0.8, settings.decision_interval_s / 2),
        )
        if not settings.payment_partitions:
            self._offsets.count()
        self._learned = LearnedTimes(
            Path(settings.state_dir), group=f"{group}, {settings.runtime or settings.delivery}", say=warn
        )
        self._rebalances = Rebalances(
            settings.rebalance_time_s,
            learn=settings.learn_rebalance_time,
            latency_target_s=settings.latency_target_s,
            warn=warn,
            known=self._learned.read(),
            clock=steady_s,
        )
        self._group = LiveGroup(
            loads=LoadReader(self._offsets),
            reports=self._reports,
            publisher=Publisher(
                PlanLog(connection, group),
                self._scaler,
                self._journal.record,
                steady_s,
                uptake=Uptake(
                    math.inf if settings.runtime else settings.taken_within_s,
                    steady_s,
                    self._metrics.plan_taken.observe,
                ),
                trouble=partial(self._troubles.tell, "plans"),
                grace_s=settings.absence_grace_s,
            ),
            scaler=self._scaler,
            service_rates=ServiceRates(
                settings.first_service_rate, settings.relative_speed_of, alike=settings.rates_alike
            ),
            rebalances=self._rebalances,
            places_itself=bool(settings.runtime),
            stops_all=not settings.runtime and settings.delivery is Delivery.EAGER,
            overhead_s=settings.overhead_s,
            startup_s=settings.startup_s,
            commit_age_s=settings.commit_age_s,
            trouble=self._troubles.tell,
        )
        self._decisions = LiveJournal(
            self._journal.record, self._group.status, policy.name, troubles=lambda: self._troubles.now
        )
        self._controller = Controller(self._group, Watched(policy, self._troubles), self._decisions)
        self._loop = Loop(
            self._tick,
            partial(
                self._troubles.survived,
                "advance",
                self._group.advance,
                fatal=FencedError,
                unwell_after=round(LASTING * settings.decision_interval_s / STEP_S),
            ),
            interval_s=settings.decision_interval_s,
            offset_s=settings.tick_offset_s,
            stop=stop,
            urgent=partial(self._troubles.asked, "watch", self._controller.urgent, fatal=FencedError),
            stepped=self._clock_stepped,
        )

    def run(self) -> None:
        """Decide and act until told to stop. Raises FencedError when another controller has taken over."""
        self._metrics.leading.set(1)
        self._show()  # from here on everything that the pages ask for is there
        prefix = self._settings.replica_prefix
        self._group.start(tuple(f"{prefix}-{ordinal}" for ordinal in range(self._settings.initial_replicas)))
        rehearse(  # while the first replicas start
            policy_from(self._settings),
            partitions=self._offsets.partitions,
            service_rate=self._settings.first_service_rate,
            interval_s=self._settings.decision_interval_s,
            done=self._stop.is_set,
            failed=lambda fault: self._warn(f"rehearsal: {fault}"),
        )
        gc.freeze()  # what was imported and compiled stays: looking through it again takes longer than a decision
        self._loop.run()

    def stop_replicas(self) -> None:
        """Stop every replica and wait until all are gone; each gives back what it owns. The plan stays in force."""
        self._scaler.stop_all()

        def gone() -> bool:
            self._scaler.reconcile(self._reports.poll())
            return not self._scaler.running

        with suppress(NotWithinError):  # replicas that are not our children (adopted) signal nothing when they end
            until(gone, self._settings.drain_s + STOP_MARGIN_S + STOP_SLACK_S, "all replicas have ended", STEP_S)

    def close(self) -> int:
        """Leave the brokers. Returns how many journal entries were lost."""
        self._pages.close()
        self._learned.save(self._rebalances.rounds, self._rebalances.remembered, at_once=True)
        self._launcher.close()
        self._reports.close()
        self._offsets.close()
        return self._journal.close()

    def _clock_stepped(self, by_s: float) -> None:
        if by_s:
            self._metrics.clock_steps.inc()
        said = f"the wall clock was set by {by_s:+.1f} s; nothing that is decided rests on it" if by_s else ""
        self._troubles.tell("clock", said)

    def _tick(self) -> None:
        with self._metrics.tick_seconds.time():
            failed = self._troubles.survived("tick", self._controller.tick, fatal=FencedError, unwell_after=LASTING)
        if failed:
            self._decisions.record_hold(NotReadyError(failed))
        self._learned.save(self._rebalances.rounds, self._rebalances.remembered)
        self._metrics.rebalance_time.set(self._group.rebalance_time_s)
        self._metrics.last_tick.set_to_current_time()

    def _plan(self) -> dict[str, Any]:
        """Return what the page about the plan shows."""
        intent = self._group.intent
        wanted = intent and {
            "replicas": intent.plan.replicas,
            "assignment": None if intent.plan.assignment is None else dict(intent.plan.assignment),
            "action": intent.action,
            "reason": intent.reason,
        }
        return {
            "in_force": self._group.in_force,
            "wanted": wanted,
            "rebalance_time": self._group.rebalance_figures(),
            "service_rates": self._group.learned_rates,
            "latencies": self._group.latencies,
        }
