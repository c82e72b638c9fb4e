"""The log of a process on standard error. A message is one line of text or JSON. Repeated messages are suppressed."""

import logging
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from typing import Final

import msgspec

from contracts.settings import Settings, setting
from contracts.validation import from_environment

REPEAT_S: Final = 10.0
"""Seconds until a repeated message is logged again. Without a broker, aiokafka repeats a message 50 times a second."""
LEVELS: Final = {
    "aiokafka": logging.WARNING,
    "faust": logging.WARNING,
    "mode": logging.WARNING,
    "mode.timers": logging.ERROR,  # it warns about every commit that takes longer than its interval
    "services.consumer": logging.INFO,
    "aiokafka.consumer.group_coordinator": logging.ERROR,  # it warns at every rebalance
}
"""Logger → lowest level that is logged. Others: WARNING. Debug messages of aiokafka and Faust would use 12 % CPU."""
_CONTROL: Final = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
"""How control characters are printed. Text from other programs may contain them."""
TRACEBACK_PREFIX: Final = "autoscaler."
"""Prefix of the loggers that print tracebacks, because their failures are bugs, not outages."""


@dataclass(frozen=True, kw_only=True)
class LogSettings(Settings):
    """Settings of the log, from TAILPACK_LOG_FORMAT."""

    log_format: str = setting("text", known=("text", "json"))
    """Format of the log: `text`, or `json` with one object a line."""


class TextLines(logging.Formatter):
    """Formats text lines. Lines of the process's own logger start with its name, without time and level."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self.process = process

    def format(self, record: logging.LogRecord) -> str:
        """Return the record and its exception as one line. Loggers with TRACEBACK_PREFIX add the traceback below it."""
        if record.name == self.process:
            warning = "warning: " if record.levelno == logging.WARNING else ""
            return f"{self.process}: {warning}{record.getMessage().translate(_CONTROL)}"
        message = " ".join(record.getMessage().split()).translate(_CONTROL)
        failure = record.exc_info[1] if record.exc_info else None
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {message}"
        if failure is None:
            return line
        if record.name.startswith(TRACEBACK_PREFIX):
            return f"{line}\n{''.join(traceback.format_exception(failure)).rstrip()}"
        return line + " ".join(f" ({type(failure).__name__}: {failure})".splitlines()).translate(_CONTROL)


class JsonLines(TextLines):
    """Formats JSON lines: time (UTC), level, process, logger, thread and message. Failures add error and traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as one line of JSON."""
        entry: dict[str, str | None] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "process": self.process,
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if record.exc_info and (failure := record.exc_info[1]) is not None:
            entry["error"] = f"{type(failure).__name__}: {failure}"
            entry["traceback"] = "".join(traceback.format_exception(failure))
        return msgspec.json.encode(entry).decode()


def suppress_repeats(process: str) -> Callable[[logging.LogRecord], bool]:
    """Return a filter. It passes all messages of the process's own logger, others once per template in REPEAT_S."""
    shown: dict[tuple[str, str], float] = {}

    def is_shown(record: logging.LogRecord) -> bool:
        kind, now = (record.name, str(record.msg)), time.monotonic()
        if record.name != process and now - shown.get(kind, -inf) < REPEAT_S:
            return False
        shown[kind] = now
        return True

    return is_shown


def configure(process: str, environ: Mapping[str, str]) -> logging.Logger:
    """Configure the log and return the process's logger. Raises InvalidSettingsError; then the log is text."""
    handler = logging.StreamHandler()
    handler.setFormatter(TextLines(process))
    handler.addFilter(suppress_repeats(process))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    for name, level in (LEVELS | {process: logging.INFO}).items():
        logging.getLogger(name).setLevel(level)
    own = logging.getLogger(process)
    if from_environment(environ, LogSettings).log_format == "json":
        handler.setFormatter(JsonLines(process))
        logging.captureWarnings(True)
        sys.excepthook = lambda kind, failure, where: own.critical("ended", exc_info=(kind, failure, where))
        threading.excepthook = lambda ended: own.error("a thread failed", exc_info=ended.exc_value)
    return own
