"""`python -m services.payment`: one Payment replica, until SIGTERM or SIGINT."""

import asyncio
import os
import sys

from contracts.connection import read_settings
from contracts.validation import InvalidSettingsError
from services.common import logs
from services.consumer import ReplicaError
from services.payment.app import PaymentService
from services.payment.settings import ReplicaSettings


def main() -> int:
    """Return the exit status: 0 stopped as asked, 1 could not go on, 2 bad settings."""
    try:
        connection, settings = read_settings(os.environ, ReplicaSettings)
    except InvalidSettingsError as wrong:
        sys.stderr.write("".join(f"{problem}\n" for problem in wrong.problems))
        return 2
    logs.configure()
    try:
        asyncio.run(PaymentService(settings, connection).consumer.run())
    except ReplicaError as ended:
        sys.stderr.write(f"{ended}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
