"""Log lines of a replica: one line each, and no flood while the broker is away."""

import logging
import time
from typing import Final

QUIET_S: Final = 30.0
"""The same message is shown once in this long: aiokafka repeats some at every retry, 50 times a second."""
ROUND_LOGGER: Final = "aiokafka.consumer.group_coordinator"
"""Warns at every rebalance, which is this group's daily work."""


class Sparingly(logging.Filter):
    """Lets the same message (by its template) through once in QUIET_S, without a traceback."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether to show the record."""
        if record.exc_info and record.exc_info[1] is not None:
            record.msg, record.args = f"{record.getMessage()}: {record.exc_info[1]!r}", None
        record.exc_info = None
        kind = (record.name, str(record.msg))
        now = time.monotonic()
        if now - self._shown.get(kind, float("-inf")) < QUIET_S:
            return False
        self._shown[kind] = now
        return True


def configure(replica: str) -> None:
    """Send warnings and errors to standard error, one line each, with the replica's name."""
    handler = logging.StreamHandler()
    handler.addFilter(Sparingly())
    handler.setFormatter(logging.Formatter(f"%(asctime)s {replica} %(levelname)s %(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    logging.getLogger(ROUND_LOGGER).setLevel(logging.ERROR)
    logging.getLogger("services").setLevel(logging.INFO)
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # until connected, the start tells what fails, in one line


def connected() -> None:
    """Show aiokafka's own warnings from now on."""
    logging.getLogger("aiokafka").setLevel(logging.WARNING)
