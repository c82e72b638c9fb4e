"""Logging of a process: warnings and worse on standard error, one line each, repeats held back."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

REPEAT_S: Final = 10.0
"""A logger's same complaint is shown again after this long: of an absent broker aiokafka tells 50 times a second."""


class OneLine(logging.Formatter):
    """Exceptions as their last line; the supervisor's log stays readable during an outage."""

    def formatException(self, ei: object) -> str:  # noqa: N802 the name is logging's
        """Return nothing: the message line carries it."""
        return ""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        message = " ".join(record.getMessage().split())
        failure = record.exc_info[1] if record.exc_info else None
        cause = " ".join(f" ({type(failure).__name__}: {failure})".splitlines()) if failure else ""
        return f"{self.formatTime(record)} {record.levelname} {record.name}: {message}{cause}"


class Repeats(logging.Filter):
    """Lets the same complaint (by its template) through once in REPEAT_S."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this complaint was not shown just now."""
        kind = (record.name, str(record.msg))
        now = time.monotonic()
        if now - self._shown.get(kind, float("-inf")) < REPEAT_S:
            return False
        self._shown[kind] = now
        return True


def configure() -> None:
    """Set the process's logging up. Building aiokafka's and Faust's debug records alone costs an eighth of the CPU."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    handler.addFilter(Repeats())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name, level in (
        ("aiokafka", logging.WARNING),
        ("faust", logging.WARNING),
        ("mode", logging.WARNING),
        ("mode.timers", logging.ERROR),  # it warns whenever a commit takes longer than its interval
        ("services.consumer", logging.INFO),
        ("aiokafka.consumer.group_coordinator", logging.ERROR),  # it warns at every rebalance, which is daily work
    ):
        logging.getLogger(name).setLevel(level)


@contextmanager
def quiet_aiokafka() -> Iterator[None]:
    """Hide what aiokafka's clients complain of: whoever waits for the broker tells it in one line, at the deadline."""
    log = logging.getLogger("aiokafka")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        log.setLevel(level)
