"""`python -m services.payment`: one Payment replica, until SIGTERM or SIGINT."""

import asyncio
import os
import sys

from contracts.connection import Connection
from contracts.validation import InvalidSettingsError, from_environment
from services.consumer import ReplicaError, logs
from services.payment.service import PaymentService
from services.payment.settings import ReplicaSettings


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
        asyncio.run(PaymentService(settings, connection).consumer.run())
    except ReplicaError as ended:
        sys.stderr.write(f"{ended}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
