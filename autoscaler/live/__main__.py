"""python -m autoscaler.live: decide once per interval how many Payment replicas run and who owns which partition.

SIGTERM ends the controller alone: its replicas serve on by the last plan, and the next controller adopts them.
SIGINT (Ctrl-C) stops the replicas, too. python -m autoscaler.live --stop-replicas stops those that a controller left.
"""

import argparse
import os
import signal
import sys
from pathlib import Path
from threading import Event

from confluent_kafka import KafkaException

from autoscaler.live.composition import LiveAutoscaler, policy_from
from autoscaler.live.launcher import stop_remembered
from autoscaler.live.plan_log import FencedError, PlanNotWrittenError
from autoscaler.live.processes import STOP_MARGIN_S
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
    parser = argparse.ArgumentParser(prog="python -m autoscaler.live", description="Settings come from TAILPACK_….")
    parser.add_argument(
        "--stop-replicas", action="store_true", help="stop the replicas that an earlier autoscaler left, and end"
    )
    only_stop = parser.parse_args().stop_replicas
    try:
        settings, connection, policy = _read()
    except InvalidSettingsError as wrong:
        return _refuse(wrong.problems)
    state_dir = Path(settings.state_dir)
    told: list[int] = []
    stop = Event()

    def asked_to_stop(number: int, _frame: object) -> None:
        told.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, asked_to_stop)
    try:
        with only_one(state_dir):
            if only_stop:
                return _stop(state_dir, settings.drain_s + STOP_MARGIN_S)
            return _run(settings, connection, policy, stop, told)
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


def _run(settings: AutoscalerSettings, connection: Connection, policy: Policy, stop: Event, told: list[int]) -> int:
    try:
        autoscaler = LiveAutoscaler(settings, connection, policy, os.environ, stop, warn=_warn)
    except KafkaException as failed:
        return _say(f"cannot start on {connection.bootstrap_servers}: {failed.args[0].str()}", EXIT_NO_KAFKA)
    except (PlanNotWrittenError, FencedError) as failed:
        return _say(f"cannot start on {connection.bootstrap_servers}: {failed}", EXIT_NO_KAFKA)
    try:
        autoscaler.run()
        if signal.SIGINT in told:
            autoscaler.stop_replicas()
        return 0
    except FencedError as fenced:
        return _say(f"{fenced}; this one ends, its replicas stay", EXIT_FENCED)
    finally:
        if lost := autoscaler.close():
            _say(f"{lost} journal records did not reach {connection.bootstrap_servers}", 0)


def _stop(state_dir: Path, patience_s: float) -> int:
    stopped, killed = stop_remembered(state_dir, patience_s)
    _say(
        f"stopped {', '.join(stopped) or 'no replica'}{f'; killed {names}' if (names := ', '.join(killed)) else ''}", 0
    )
    return 0


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
