"""The log of a process on standard error: a line each, for people or as JSON; repeats are held back."""

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
"""A logger's same complaint is shown again after this long: of an absent broker aiokafka tells 50 times a second."""
LEVELS: Final = {
    "aiokafka": logging.WARNING,
    "faust": logging.WARNING,
    "mode": logging.WARNING,
    "mode.timers": logging.ERROR,  # it warns whenever a commit takes longer than its interval
    "services.consumer": logging.INFO,
    "aiokafka.consumer.group_coordinator": logging.ERROR,  # it warns at every rebalance, which is daily work
}
"""Of the others warnings. Building aiokafka's and Faust's debug records alone costs an eighth of the CPU."""
WHOLE: Final = "autoscaler."
"""Loggers below it show whole tracebacks in text, too: what failed there is a fault of the program, not an outage."""


@dataclass(frozen=True, kw_only=True)
class LogSettings(Settings):
    """Environment: TAILPACK_LOG_FORMAT."""

    log_format: str = setting("text", known=("text", "json"))
    """Format of the log: `text`, or `json` with one object a line."""


class TextLines(logging.Formatter):
    """A message of the process itself follows its name alone; an exception is its last line."""

    def __init__(self, process: str) -> None:
        super().__init__()
        self.process = process

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and where `WHOLE` says so a traceback."""
        if record.name == self.process:
            warning = "warning: " if record.levelno == logging.WARNING else ""
            return f"{self.process}: {warning}{record.getMessage()}"
        message = " ".join(record.getMessage().split())
        failure = record.exc_info[1] if record.exc_info else None
        line = f"{self.formatTime(record)} {record.levelname} {record.name}: {message}"
        if failure is None:
            return line
        if record.name.startswith(WHOLE):
            return f"{line}\n{''.join(traceback.format_exception(failure)).rstrip()}"
        return line + " ".join(f" ({type(failure).__name__}: {failure})".splitlines())


class JsonLines(TextLines):
    """One object a line: time (UTC), level, process, logger, thread, message; error and traceback after a failure."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the object."""
        said: dict[str, str | None] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="microseconds"),
            "level": record.levelname.lower(),
            "process": self.process,
            "logger": record.name,
            "thread": record.threadName,
            "message": record.getMessage(),
        }
        if record.exc_info and (failure := record.exc_info[1]) is not None:
            said["error"] = f"{type(failure).__name__}: {failure}"
            said["traceback"] = "".join(traceback.format_exception(failure))
        return msgspec.json.encode(said).decode()


def suppress_repeats(process: str) -> Callable[[logging.LogRecord], bool]:
    """Return a filter: the same complaint (by its template) once in REPEAT_S; all that the process itself says."""
    shown: dict[tuple[str, str], float] = {}

    def is_shown(record: logging.LogRecord) -> bool:
        kind, now = (record.name, str(record.msg)), time.monotonic()
        if record.name != process and now - shown.get(kind, -inf) < REPEAT_S:
            return False
        shown[kind] = now
        return True

    return is_shown


def configure(process: str, environ: Mapping[str, str]) -> logging.Logger:
    """Set the log of this process up; return the logger for what it says to whoever started it.

    Raises InvalidSettingsError; the logger of that name works by then, for people.
    """
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
        threading.excepthook = lambda ended: own.error("a thread ended", exc_info=ended.exc_value)
    return own
