"""python -m autoscaler.live: decide once per interval how many Payment replicas run and who owns which partition."""

import os
import signal
import sys
from pathlib import Path
from threading import Event

from confluent_kafka import KafkaException

from autoscaler.live.composition import LiveAutoscaler, policy_from
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.state_dir import StateDirTakenError, only_one
from autoscaler.live.web import PortTakenError
from autoscaler.ports import Policy
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment

EXIT_SETTINGS = 2
EXIT_FENCED = 3
EXIT_NO_KAFKA = 4


def main() -> int:
    """Run until SIGTERM or SIGINT. Returns the exit code."""
    try:
        settings, connection, policy = _read()
    except InvalidSettingsError as wrong:
        return _refuse(wrong.problems)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        with only_one(Path(settings.state_dir)):
            return _run(settings, connection, policy, stop)
    except (StateDirTakenError, PortTakenError) as taken:
        return _refuse([str(taken)])
    except OSError as failed:
        return _refuse([f"TAILPACK_STATE_DIR = {settings.state_dir}: {failed.strerror}"])


def _read() -> tuple[AutoscalerSettings, Connection, Policy]:
    """Read everything, so that every mistake is named at once. Raises InvalidSettingsError."""
    problems: list[str] = []
    settings: AutoscalerSettings | None = None
    connection: Connection | None = None
    policy: Policy | None = None
    try:
        connection = from_environment(os.environ, Connection)
        connection.security()
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    try:
        settings = from_environment(os.environ, AutoscalerSettings)
        policy = policy_from(settings)
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    except ValueError as wrong:
        problems.append(f"TAILPACK_POLICY or its settings: {wrong}")
    if settings is None or connection is None or policy is None or problems:
        raise InvalidSettingsError(problems)
    return settings, connection, policy


def _run(settings: AutoscalerSettings, connection: Connection, policy: Policy, stop: Event) -> int:
    try:
        autoscaler = LiveAutoscaler(settings, connection, policy, os.environ, stop, warn=_warn)
    except KafkaException as failed:
        return _say(f"cannot start on {connection.bootstrap_servers}: {failed.args[0].str()}", EXIT_NO_KAFKA)
    except (PlanNotWrittenError, FencedError) as failed:
        return _say(f"cannot start on {connection.bootstrap_servers}: {failed}", EXIT_NO_KAFKA)
    try:
        autoscaler.run()
        if not settings.keep_replicas:
            autoscaler.stop_replicas()
        return 0
    except FencedError as fenced:
        return _say(f"{fenced}; this one ends, its replicas stay", EXIT_FENCED)
    finally:
        if lost := autoscaler.close():
            _say(f"{lost} journal entries did not reach {connection.bootstrap_servers}", 0)


def _refuse(problems: list[str]) -> int:
    for problem in problems:
        _say(problem, EXIT_SETTINGS)
    return EXIT_SETTINGS


def _warn(sentence: str) -> None:
    _say(f"warning: {sentence}", 0)


def _say(line: str, code: int) -> int:
    sys.stderr.write(f"autoscaler: {line}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
