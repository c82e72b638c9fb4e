"""Traces from files."""

from pathlib import Path

from contracts.validation import InvalidSettingsError
from loadgen.trace import Trace, TraceError, parse_trace


def read_trace(path: Path) -> Trace:
    """Read a CSV file. Raises InvalidSettingsError with one message that names the first mistakes by their lines."""
    try:
        with path.open(encoding="utf-8") as lines:
            return parse_trace(path.name, lines)
    except OSError as missing:
        raise InvalidSettingsError([f"{path}: cannot be read ({missing.strerror})"]) from missing
    except UnicodeDecodeError as wrong:
        raise InvalidSettingsError([f"{path}: is not UTF-8 text"]) from wrong
    except TraceError as wrong:
        raise InvalidSettingsError([f"{path.name}: {wrong}"]) from wrong
