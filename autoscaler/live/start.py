"""An autoscaler process from its start to its exit status."""

import fcntl
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any, Final

from confluent_kafka import KafkaException

from autoscaler.live.acting import keep_owners
from autoscaler.live.composition import LiveAutoscaler, launcher_from
from autoscaler.live.configuration import StartupConfig, policy_config_of, read, read_chain
from autoscaler.live.hold_reader import ActChangedError, HoldReader
from autoscaler.live.kafka import CONTROL_NEED, DEADLINE_S, check, topic_exists
from autoscaler.live.launcher import LauncherError, of_extra, stop_orphans
from autoscaler.live.leadership import Leadership, stand_by
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.problems import exit_status_of
from autoscaler.live.replica import STOP_MARGIN_S
from autoscaler.ports import NotReadyError
from contracts.holds import Hold
from contracts.preflight import PreflightError, check_topics
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError
from contracts.waiting import Stop

log = logging.getLogger("autoscaler")
EXIT_FENCED: Final = 3
EXIT_NO_KAFKA: Final = 4
EXIT_NO_LAUNCHER: Final = 5


def autoscale(*configs: Path, only_stop: bool = False, act: str = "") -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code. act: overrides the setting.

    configs: TOML files, one for each group. The environment overrides them. Several files are a chain: each group reads
    the output of the group before it, and they share one SLO. only_stop: stop the replicas left running, then exit.
    """
    environ = os.environ | ({"TAILPACK_ACT": act} if act else {})
    fixed = "this process only observes" * bool(act)
    return exit_status_of(log, lambda: _autoscale(configs, environ, fixed, only_stop=only_stop))


def _autoscale(configs: Sequence[Path], environ: Mapping[str, str], fixed: str, *, only_stop: bool) -> int:
    signals, stop = list[int](), Stop()

    def on_signal(number: int, _frame: object) -> None:
        signals.append(number)
        stop.set()
        if len(signals) == 1 and stop.interrupts:
            raise KeyboardInterrupt

    is_chain = len(configs) > 1
    stages = read_chain(configs, environ) if is_chain else [read(next(iter(configs), None), environ)]
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, on_signal)
        with ExitStack() as locks:
            for stage in stages if stages[0].settings.acts or only_stop else ():
                locks.enter_context(lock_state_dir(Path(stage.settings.state_dir)))
            if only_stop:
                return max(map(_stop, stages))
            return _run_all(stages, stop, signals) if is_chain else _run(stages[0], stop, signals, fixed)
    except KeyboardInterrupt:  # before an observer's first tick
        return 0
    except LauncherError as failed:
        return _log_error(str(failed), EXIT_NO_LAUNCHER)
    except OSError as failed:
        if not failed.filename:  # not about a file
            raise
        raise InvalidSettingsError([f"TAILPACK_STATE_DIR: {failed.filename}: {failed.strerror}"]) from failed


@contextmanager
def lock_state_dir(state_dir: Path) -> Iterator[None]:
    """Lock the folder until this process exits, even if it crashes. Raises InvalidSettingsError or OSError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(state_dir, os.O_RDONLY)  # the folder itself: no file is left behind
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            problem = f"another autoscaler runs on {state_dir}; stop it, or set TAILPACK_STATE_DIR"
            raise InvalidSettingsError([problem]) from error
        yield
    finally:
        os.close(handle)


def _run_all(stages: Sequence[StartupConfig], stop: Stop, signals: list[int]) -> int:
    """Run one autoscaler for each stage until one exits. Return the highest exit status."""

    def run(stage: StartupConfig) -> int:
        try:
            return _run(stage, stop, signals, "a chain must act")
        finally:
            stop.set()

    with ThreadPoolExecutor(len(stages), "autoscaler") as pool:
        return max(status.result() for status in [pool.submit(run, stage) for stage in stages])


def _run(config: StartupConfig, stop: Stop, signals: list[int], fixed: str = "") -> int:
    """Run with the configured value of `act`, and again with each that an operator orders. fixed: why none can be."""
    order, refused, configured = None, dict[Hold, str](), config.settings.act
    refuse = lambda hold: fixed or refused.get(hold, "")  # noqa: E731
    holds = partial(HoldReader, config.connection, warn=log.warning, configured=configured, refused=refuse)
    while True:
        try:
            with ExitStack() as locks:
                settings = replace(config.settings, act=order.direction.value if order else configured)
                if order and settings.acts:
                    locks.enter_context(lock_state_dir(Path(settings.state_dir)))
                keeps = configured == "on" and settings.act == "off" and settings.is_foreign
                ordered = replace(config, settings=settings, keeps_owners=keeps)
                return _run_as(ordered, stop, signals, holds if settings.acts or not fixed else None)
        except ActChangedError as changed:
            (order,) = changed.args
            log.warning(order or f"act = {configured} again, as configured")
        except (PreflightError, LauncherError, ValueError) as failed:
            if order is None and isinstance(failed, PreflightError):
                return _log_error(str(failed), EXIT_NO_KAFKA)
            if order is None:
                raise
            refused[order], order = str(failed), None
        config = replace(config, policy=policy_config_of(config.settings).policy())  # the former knows another group


def _run_as(config: StartupConfig, stop: Stop, signals: list[int], holds: Callable[..., HoldReader] | None) -> int:
    settings = config.settings
    if not settings.kubernetes_lease or not (settings.acts or config.keeps_owners):
        return _lead(config, stop, signals, holds)
    with of_extra("kubernetes"):
        from autoscaler.live.launchers.api import Api  # noqa: PLC0415  takes a second and 50 MB

    losses: list[str] = []

    def lost(why: str) -> None:
        losses.append(why)
        stop.set()

    name, duration_s = settings.kubernetes_lease, settings.kubernetes_lease_s
    leadership = Leadership(Api(settings).lease, name, gethostname(), duration_s, lost)
    if not stand_by(leadership, settings, stop):
        return 0
    try:
        status = _lead(config, stop, signals, holds, lambda: leadership.why_not_leading)
    finally:
        leadership.release()
    return _log_error(f"{losses[0]}, exiting; replicas keep running", EXIT_FENCED) if losses else status


def _lead(
    config: StartupConfig, stop: Stop, signals: list[int], holds_of: Any, why_not_leading: Callable[[], str] = str
) -> int:
    settings, connection, holds, launcher = config.settings, config.connection, None, None
    stop.interrupts = not settings.acts  # compilation may take many seconds, and an observer has nothing to tidy up
    with ExitStack() as stack:
        try:
            if settings.acts:
                check(connection, settings, follows_plans=False)
            elif settings.act == "propose":
                needed = (qualified(connection.namespace, topic) for topic in (Topic.PLANS, Topic.HOLDS))
                check_topics(connection, dict.fromkeys(needed, CONTROL_NEED), DEADLINE_S)
            elif holds_of and not topic_exists(connection, Topic.HOLDS, "act cannot be changed without a restart"):
                holds_of = None
            if holds_of:
                holds = stack.enter_context(closing(holds_of(settings)))
                if holds.act(settings.act) != settings.act:
                    raise ActChangedError(holds.order)
            _keep_owners(config, stack)
            if settings.acts:
                config = _prepared(config)
                launcher = launcher_from(config.settings, config.environ, why_not_leading)
            autoscaler = LiveAutoscaler(config, launcher, stop, holds, stack, warn=log.warning)
        except (KafkaException, PlanNotWrittenError, FencedError, NotReadyError) as failed:
            reason = failed.args[0].str() if isinstance(failed, KafkaException) else failed
            raise PreflightError(f"cannot start on {connection.bootstrap_servers}: {reason}") from failed
        try:
            with suppress(KeyboardInterrupt):
                autoscaler.run()
            if signal.SIGINT in signals:
                autoscaler.stop_replicas()
            return 0
        except FencedError as fenced:
            return _log_error(f"{fenced}; exiting, replicas keep running", EXIT_FENCED)
        finally:
            if summary := autoscaler.summary():
                sys.stdout.write(f"{summary}\n")
            if lost := autoscaler.close():
                log.error(f"{lost} journal records were lost: {connection.bootstrap_servers} did not acknowledge them")


def _prepared(config: StartupConfig) -> StartupConfig:
    """Check Kafka, topics and group. Return the configuration with the kind of consumers that the group has."""
    settings, connection = config.settings, config.connection
    check(connection, settings, follows_plans=not settings.runtime and not settings.is_foreign)
    if not settings.is_foreign:
        return config
    from autoscaler.live.foreign.inspection import inspect  # noqa: PLC0415  imports aiokafka

    consumers, line = inspect(connection, settings)
    log.info(line)
    return replace(config, settings=replace(settings, consumers=consumers))


def _keep_owners(config: StartupConfig, stack: ExitStack) -> None:
    if config.keeps_owners and (config := _prepared(config)).settings.is_foreign:
        launcher = launcher_from(config.settings, config.environ, lambda: "act = off")
        leader = keep_owners(config.connection, config.settings, launcher, log.info)
        stack.callback(leader.close, leave=False)


def _stop(config: StartupConfig) -> int:
    timeout_s = config.settings.drain_s + STOP_MARGIN_S
    stopped, killed = stop_orphans(launcher_from(config.settings, config.environ), timeout_s)
    after = [f"killed {name} after {timeout_s:g} s" for name in killed]
    log.info("; ".join([f"stopped {', '.join(stopped) or 'no replica'}", *after]))
    return 0


def _log_error(line: str, code: int) -> int:
    log.error(line)
    return code
