"""The life of an autoscaler process: its configuration, its run, its exit status."""

import fcntl
import logging
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from socket import gethostname
from threading import Event
from typing import Final

from confluent_kafka import KafkaException

from autoscaler.live.composition import LiveAutoscaler, StartupConfig, asked_of, launcher_from, policy_from
from autoscaler.live.kafka import check
from autoscaler.live.launcher import LauncherError, of_extra, stop_orphans
from autoscaler.live.leadership import Leadership, stand_by
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.replicas import STOP_MARGIN_S
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.troubles import status_of
from autoscaler.policies.chain import chained_policies
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.ports import NotReadyError, Policy
from contracts.connection import read_settings
from contracts.preflight import PreflightError
from contracts.validation import InvalidSettingsError, as_environment

log = logging.getLogger("autoscaler")
AS_ONE: Final = TailAware.name
BEHIND_S: Final = 0.05
"""A stage decides so long after the one before it, whose tick it looks at."""
EXIT_FENCED: Final = 3
EXIT_NO_KAFKA: Final = 4
EXIT_NO_LAUNCHER: Final = 5


def autoscale(*configs: Path, only_stop: bool = False) -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code.

    configs: TOML files, one for each group; the environment goes first. Of several, each group reads the output of the
    one before it, and they are scaled as one. only_stop: stop the replicas that an earlier autoscaler left, and end.
    """
    return status_of(log, lambda: _autoscale(configs, only_stop=only_stop))


def _autoscale(configs: Sequence[Path], *, only_stop: bool) -> int:
    signals: list[int] = []
    stop = Event()

    def asked_to_stop(number: int, _frame: object) -> None:
        signals.append(number)
        stop.set()

    told = read_chain(configs, os.environ) if len(configs) > 1 else [read(next(iter(configs), None), os.environ)]
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, asked_to_stop)
        with ExitStack() as claimed:
            for one in told:
                claimed.enter_context(only_one(Path(one.settings.state_dir)))
            if only_stop:
                return max(map(_stop, told))
            return _run(told[0], stop, signals) if len(told) == 1 else _run_all(told, stop, signals)
    except LauncherError as failed:
        return _say(str(failed), EXIT_NO_LAUNCHER)
    except OSError as failed:
        if not failed.filename:  # it is about no file
            raise
        raise InvalidSettingsError([f"TAILPACK_STATE_DIR: {failed.filename}: {failed.strerror}"]) from failed


@contextmanager
def only_one(state_dir: Path) -> Iterator[None]:
    """Claim the folder for this process until it ends, however it ends. Raises InvalidSettingsError or OSError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(state_dir, os.O_RDONLY)  # the folder itself: no file is left behind
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            why = f"another autoscaler runs on {state_dir}; stop it, or set TAILPACK_STATE_DIR"
            raise InvalidSettingsError([why]) from taken
        yield
    finally:
        os.close(handle)


def read(config: Path | None, environ: Mapping[str, str]) -> StartupConfig:
    """Read everything, so that every mistake is named at once. Raises InvalidSettingsError."""
    policies: list[Policy] = []

    def make(settings: AutoscalerSettings) -> None:
        policies.append(settings.made(lambda: policy_from(settings)))

    connection, settings = read_settings(environ, AutoscalerSettings, config, make)
    theirs = replace(connection, client_properties=settings.replica_client_properties or connection.client_properties)
    environ = {**environ, **as_environment(theirs), **as_environment(settings)}
    return StartupConfig(settings, connection, policies[0], environ)


def read_chain(configs: Sequence[Path], environ: Mapping[str, str]) -> list[StartupConfig]:
    """Read the stages of a chain; their SLOs add up to one. Raises InvalidSettingsError, see `read`."""
    told: list[StartupConfig] = []
    problems: list[str] = []
    for config in configs:
        try:
            told.append(read(config, environ))
        except InvalidSettingsError as wrong:
            problems += wrong.problems
    own = {what: [getattr(one.settings, what) for one in told] for what in ("state_dir", "replica_prefix")}
    for what, values in (own | {"namespace": [one.connection.namespace for one in told]}).items():
        problems += [f"{what} = {one!r}: each group needs its own" for one in {*values} if values.count(one) > 1]
    problems += [
        f"policy = {one.settings.policy!r}: {AS_ONE} alone looks upstream; scale the others by files of their own"
        for one in told
        if one.settings.policy != AS_ONE
    ]
    if problems:
        raise InvalidSettingsError(problems)
    chain: list[StartupConfig] = []
    for one, policy in zip(told, chained_policies([asked_of(one.settings) for one in told]), strict=True):
        offset_s = (told[0].settings.tick_offset_s + len(chain) * BEHIND_S) % one.settings.decision_interval_s
        chain.append(replace(one, policy=policy, settings=replace(one.settings, tick_offset_s=offset_s)))
    return chain


def _run_all(told: Sequence[StartupConfig], stop: Event, signals: list[int]) -> int:
    """Run one autoscaler for each stage, side by side; when one ends all do. Return the highest exit status."""

    def run(one: StartupConfig) -> int:
        try:
            return _run(one, stop, signals)
        finally:
            stop.set()

    with ThreadPoolExecutor(len(told), "autoscaler") as pool:
        return max(running.result() for running in [pool.submit(run, one) for one in told])


def _run(told: StartupConfig, stop: Event, signals: list[int]) -> int:
    """Run at once, or once we lead, where a Lease names the leader."""
    settings = told.settings
    if not settings.kubernetes_lease:
        return _lead(told, stop, signals)
    with of_extra("kubernetes"):
        from autoscaler.live.launchers.api import api_from  # noqa: PLC0415  a second, and 50 MB

    losses: list[str] = []

    def lost(why: str) -> None:
        losses.append(why)
        stop.set()

    leadership = Leadership(api_from(settings).lease, settings.kubernetes_lease, gethostname(), lost)
    if not stand_by(leadership, settings, stop):
        return 0
    try:
        status = _lead(told, stop, signals, lambda: leadership.why_not)
    finally:
        leadership.end()
    return _say(f"{losses[0]}; this one ends, its replicas stay", EXIT_FENCED) if losses else status


def _lead(told: StartupConfig, stop: Event, signals: list[int], why_not: Callable[[], str] = str) -> int:
    settings, connection = told.settings, told.connection
    try:
        check(connection, settings, follows_plans=not settings.runtime)
        launcher = launcher_from(settings, told.environ, why_not)
        autoscaler = LiveAutoscaler(told, launcher, stop, warn=log.warning)
    except PreflightError as missing:
        return _say(str(missing), EXIT_NO_KAFKA)
    except (KafkaException, PlanNotWrittenError, FencedError, NotReadyError) as failed:
        why = failed.args[0].str() if isinstance(failed, KafkaException) else failed
        return _say(f"cannot start on {connection.bootstrap_servers}: {why}", EXIT_NO_KAFKA)
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


def _stop(told: StartupConfig) -> int:
    patience_s = told.settings.drain_s + STOP_MARGIN_S
    stopped, killed = stop_orphans(launcher_from(told.settings, told.environ), patience_s)
    log.info("; ".join([f"stopped {', '.join(stopped) or 'no replica'}", *(f"killed {name}" for name in killed)]))
    return 0


def _say(line: str, code: int) -> int:
    log.error(line)
    return code
