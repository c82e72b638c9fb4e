"""The log of a process: lines for people, or one JSON object a line; every process has it."""

import json
import logging
import os
import subprocess
import sys

import pytest

from contracts.logs import JsonLines, suppress_repeats

PROCESSES = (
    "autoscaler.live",
    "autoscaler.keda",
    "autoscaler.shadow",
    "loadgen.drivers",
    "services.comparators",
    "services.notification",
    "services.order",
    "services.payment",
    "services.shipment",
)


def complaint(message: str, failure: Exception | None = None, logger: str = "aiokafka") -> logging.LogRecord:
    failed = (type(failure), failure, None) if failure else None
    return logging.LogRecord(logger, logging.ERROR, __file__, 1, message, None, failed)


def test_as_json_an_exception_with_its_traceback_takes_one_line() -> None:
    line = JsonLines("order").format(complaint("Fetch\n failed", OSError("broker\naway")))
    told = json.loads(line)
    assert "\n" not in line
    assert told["message"] == "Fetch\n failed"
    assert (told["level"], told["process"], told["logger"]) == ("error", "order", "aiokafka")
    assert told["error"] == "OSError: broker\naway"
    assert told["time"].endswith("+00:00")


def test_the_same_complaint_is_held_back_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("contracts.logs.time.monotonic", lambda: now_s)
    is_shown = suppress_repeats("order")
    assert is_shown(complaint("away"))
    assert not is_shown(complaint("away"))
    assert is_shown(complaint("another"))
    assert [is_shown(complaint("ends", logger="order")) for _ in range(2)] == [True, True]
    now_s += 11.0
    assert is_shown(complaint("away"))


@pytest.mark.parametrize("module", PROCESSES)
def test_every_process_logs_as_it_is_told(module: str) -> None:
    ended = subprocess.run(  # without the way to Kafka: each refuses to start, and says so
        [sys.executable, "-m", module],
        env={name: text for name, text in os.environ.items() if not name.startswith("TAILPACK_")}
        | {"TAILPACK_LOG_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    told = [json.loads(line) for line in ended.stderr.splitlines()]
    assert ended.returncode == 2
    assert any("TAILPACK_BOOTSTRAP_SERVERS" in one["message"] for one in told)
    assert all(one["level"] == "error" for one in told)
