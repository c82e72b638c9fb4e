"""The log of a process: text lines or JSON lines, in every process."""

import json
import logging
import os
import subprocess
import sys

import pytest

from contracts.logs import JsonLines, suppress_repeats

PROCESSES = (
    *("autoscaler.live", "autoscaler.keda", "autoscaler.shadow", "loadgen.drivers", "tailpack.comparators"),
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
