"""`python -m services.payment`: one Payment replica, until SIGTERM or SIGINT."""

import asyncio
import os
import signal
import sys

from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment
from services.consumer import logs
from services.consumer.errors import ReplicaError
from services.consumer.replica import run_replica
from services.consumer.settings import ReplicaSettings
from services.payment.app import payment_work


async def serve(settings: ReplicaSettings, connection: Connection) -> None:
    """Run the replica until a signal asks it to stop."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stop.set)
    await run_replica(settings, connection, payment_work(settings.replica), pid=os.getpid(), stop=stop)


def main() -> int:
    """Return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    problems: list[str] = []
    try:
        settings = from_environment(os.environ, ReplicaSettings)
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    try:
        connection = from_environment(os.environ, Connection)
        connection.security()
    except InvalidSettingsError as wrong:
        problems += wrong.problems
    if problems:
        sys.stderr.write("".join(f"{problem}\n" for problem in problems))
        return 2
    logs.configure(settings.replica)
    try:
        asyncio.run(serve(settings, connection))
    except ReplicaError as ended:
        sys.stderr.write(f"{ended}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
