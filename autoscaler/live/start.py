"""The life of an autoscaler process: what it is told by a file and by its environment, its run, its exit status."""

import logging
import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from socket import gethostname
from threading import Event
from typing import Any, Final

from confluent_kafka import KafkaException

from autoscaler.live.composition import LiveAutoscaler, launcher_from, policy_from
from autoscaler.live.launcher import Launcher, LauncherError, stop_left_behind
from autoscaler.live.leadership import Leadership
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.preflight import NotThereError, check
from autoscaler.live.replicas import STOP_MARGIN_S
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.standby import stand_by
from autoscaler.live.state_dir import StateDirTakenError, only_one
from autoscaler.live.web import PortTakenError
from autoscaler.ports import NotReadyError, Policy
from contracts import logs
from contracts.config_file import from_file, read_file, strangers
from contracts.connection import Connection
from contracts.settings import Settings
from contracts.validation import InvalidSettingsError, as_environment, from_environment

log = logging.getLogger("autoscaler")
EXIT_SETTINGS: Final = 2
EXIT_FENCED: Final = 3
EXIT_NO_KAFKA: Final = 4
EXIT_NO_LAUNCHER: Final = 5


@dataclass(frozen=True, slots=True)
class Told:
    """All that an autoscaler is told."""

    settings: AutoscalerSettings
    connection: Connection
    policy: Policy
    environ: Mapping[str, str]
    """Of its replicas: this process's own, with what a file says."""


def autoscale(config: Path | None = None, *, only_stop: bool = False) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code.

    config: a TOML file; what the environment says stands above it. only_stop: stop the replicas that an earlier
    autoscaler left, and end.
    """
    try:
        logs.configure(log.name, os.environ)
        told = read(config, os.environ)
    except InvalidSettingsError as wrong:
        return _refuse(wrong.problems)
    settings = told.settings
    state_dir = Path(settings.state_dir)
    signals: list[int] = []
    stop = Event()

    def asked_to_stop(number: int, _frame: object) -> None:
        signals.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked_to_stop)
    try:
        with only_one(state_dir):
            if only_stop:
                return _stop(launcher_from(settings, told.environ), settings.drain_s + STOP_MARGIN_S)
            return _run(told, stop, signals)
    except (StateDirTakenError, PortTakenError) as taken:
        return _refuse([str(taken)])
    except LauncherError as failed:
        return _say(str(failed), EXIT_NO_LAUNCHER)
    except OSError as failed:
        return _refuse([f"TAILPACK_STATE_DIR = {settings.state_dir}: {failed.strerror}"])


def read(config: Path | None, environ: Mapping[str, str]) -> Told:
    """Read everything, so that every mistake is named at once. Raises InvalidSettingsError."""
    problems: list[str] = []
    read: list[Any] = []
    policy: Policy | None = None
    told = read_file(config) if config else {}
    if config:
        problems += strangers(config, told, Connection, AutoscalerSettings)

    def take(kind: type[Settings]) -> Any:
        return from_file(config, told, environ, kind) if config else from_environment(environ, kind)

    try:
        read.append(take(Connection))
        read[0].security()
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    try:
        read.append(take(AutoscalerSettings))
        policy = policy_from(read[-1])
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    except ValueError as wrong:
        problems.append(f"{f'{config}: policy' if config else 'TAILPACK_POLICY'} or its settings: {wrong}")
    if problems or policy is None:
        raise InvalidSettingsError(problems)
    connection, settings = read
    theirs = replace(connection, client_properties=settings.replica_client_properties or connection.client_properties)
    return Told(settings, connection, policy, {**environ, **as_environment(theirs), **as_environment(settings)})


def _run(told: Told, stop: Event, signals: list[int]) -> int:
    """Run at once, or once we lead, where a Lease says who does."""
    settings = told.settings
    if not settings.kubernetes_lease:
        return _lead(told, stop, signals)
    from autoscaler.live.launchers.api import api_from  # noqa: PLC0415  a second, and 50 MB

    losses: list[str] = []

    def lost(why: str) -> None:
        losses.append(why)
        stop.set()

    leadership = Leadership(api_from(settings), settings.kubernetes_lease, gethostname(), lost)
    if not stand_by(leadership, settings, stop):
        return 0
    try:
        status = _lead(told, stop, signals, lambda: leadership.leads)
    finally:
        leadership.end()
    return _say(f"{losses[0]}; this one ends, its replicas stay", EXIT_FENCED) if losses else status


def _lead(told: Told, stop: Event, signals: list[int], may_act: Callable[[], bool] = lambda: True) -> int:
    settings, connection = told.settings, told.connection
    try:
        check(connection, settings, follows_plans=not settings.runtime)
        launcher = launcher_from(settings, told.environ, may_act)
        autoscaler = LiveAutoscaler(
            settings, connection, told.policy, told.environ, stop, warn=log.warning, launcher=launcher
        )
    except NotThereError as missing:
        return _say(str(missing), EXIT_NO_KAFKA)
    except KafkaException as failed:
        return _say(f"cannot start on {connection.bootstrap_servers}: {failed.args[0].str()}", EXIT_NO_KAFKA)
    except (PlanNotWrittenError, FencedError, NotReadyError) as failed:
        return _say(f"cannot start on {connection.bootstrap_servers}: {failed}", EXIT_NO_KAFKA)
    try:
        autoscaler.run()
        if signal.SIGINT in signals:
            autoscaler.stop_replicas()
        return 0
    except FencedError as fenced:
        return _say(f"{fenced}; this one ends, its replicas stay", EXIT_FENCED)
    finally:
        if lost := autoscaler.close():
            log.error(f"{lost} journal records did not reach {connection.bootstrap_servers}")


def _stop(launcher: Launcher, patience_s: float) -> int:
    stopped, killed = stop_left_behind(launcher, patience_s)
    names = ", ".join(killed)
    log.info(f"stopped {', '.join(stopped) or 'no replica'}{f'; killed {names}' if names else ''}")
    return 0


def _refuse(problems: list[str]) -> int:
    for problem in problems:
        _say(problem, EXIT_SETTINGS)
    return EXIT_SETTINGS


def _say(line: str, code: int) -> int:
    log.error(line)
    return code
