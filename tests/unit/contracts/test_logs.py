"""The log of a process: text lines or JSON lines, in every process."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contracts import children
from contracts.logs import JsonLines, TextLines, suppress_repeats

PROCESSES = (
    *("autoscaler.live", "autoscaler.keda", "loadgen.drivers", "tailpack.comparators"),
    *("services.notification", "services.order", "services.payment", "services.shipment"),
)


def record(message: str, failure: Exception | None = None, logger: str = "aiokafka") -> logging.LogRecord:
    failed = (type(failure), failure, None) if failure else None
    return logging.LogRecord(logger, logging.ERROR, __file__, 1, message, None, failed)


def test_a_json_line_includes_the_traceback() -> None:
    line = JsonLines("order").format(record("Fetch\n failed", OSError("broker\naway")))
    entry = json.loads(line)
    assert "\n" not in line
    assert entry["message"] == "Fetch\n failed"
    assert (entry["level"], entry["process"], entry["logger"]) == ("error", "order", "aiokafka")
    assert entry["error"] == "OSError: broker\naway"
    assert entry["time"].endswith("+00:00")


def test_control_characters_of_other_programs_are_escaped() -> None:
    """A replica's report may contain any text."""
    for name in ("order", "aiokafka"):
        line = TextLines("order").format(record("a\norder: all is well\x1b[2K\x9b", OSError("\x07"), logger=name))
        assert not any(char in line for char in "\n\x1b\x9b\x07"), name
        assert "\\x1b[2K" in line


def test_repeated_messages_are_suppressed_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("contracts.logs.time.monotonic", lambda: now_s)
    is_shown = suppress_repeats("order")
    assert is_shown(record("away"))
    assert not is_shown(record("away"))
    assert is_shown(record("another"))
    assert [is_shown(record("ends", logger="order")) for _ in range(2)] == [True, True]
    now_s += 11.0
    assert is_shown(record("away"))


def test_a_long_log_is_renamed_at_the_next_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "MAX_LOG_BYTES", 3)
    log = tmp_path / "payment-0.log"
    for text in ("one", "two", "three"):
        assert children.start([sys.executable, "-c", f"print('{text}')"], os.environ, log).wait() == 0
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "payment-0.log": "three\n",
        "payment-0.log.1": "two\n",
    }


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_logs_json_if_configured(module: str) -> None:
    environ = {name: text for name, text in os.environ.items() if not name.startswith("TAILPACK_")}
    environ["TAILPACK_LOG_FORMAT"] = "json"  # without an address of Kafka every process refuses to start
    command = [sys.executable, "-m", module]
    ended = subprocess.run(command, env=environ, capture_output=True, text=True, check=False, timeout=60)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 2
    assert any("TAILPACK_BOOTSTRAP_SERVERS" in line["message"] for line in lines)
    assert all(line["level"] == "error" for line in lines)
