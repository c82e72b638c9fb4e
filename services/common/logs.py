"""Logging of a service: warnings and worse, one line each, repeats held back."""

import logging
import time
from typing import Final

REPEAT_S: Final = 5.0
"""A logger's same complaint is shown again after this long: an absent broker is reported ten times a second."""


class _OneLine(logging.Formatter):
    """Exceptions as their last line and place; the supervisor's log stays readable during an outage."""

    def formatException(self, ei: object) -> str:  # noqa: N802 the name is logging's
        """Return nothing: the message line carries it."""
        return ""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        message = " ".join(record.getMessage().split())
        failure = record.exc_info[1] if record.exc_info else None
        cause = " ".join(f" ({type(failure).__name__}: {failure})".splitlines()) if failure else ""
        return f"{self.formatTime(record)} {record.levelname} {record.name}: {message}{cause}"


class _Repeats(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self._last: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether this complaint was not shown just now."""
        key = (record.name, str(record.msg))
        now = time.monotonic()
        if now - self._last.get(key, -REPEAT_S) < REPEAT_S:
            return False
        self._last[key] = now
        return True


def configure() -> None:
    """Send warnings to stderr. Building aiokafka's and Faust's debug records alone costs an eighth of the CPU."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    handler.addFilter(_Repeats())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name in ("aiokafka", "faust", "mode"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("mode.timers").setLevel(
        logging.ERROR
    )  # it warns whenever a commit takes longer than its interval
