"""A service's log: one line for each complaint, repeats held back."""

import logging

import pytest

from services.common.logs import _OneLine, _Repeats


def complaint(message: str, failure: Exception | None = None) -> logging.LogRecord:
    failed = (type(failure), failure, None) if failure else None
    return logging.LogRecord("aiokafka", logging.ERROR, __file__, 1, message, None, failed)


def test_an_exception_takes_one_line() -> None:
    line = _OneLine().format(complaint("Fetch\n failed", OSError("broker\naway")))
    assert line.endswith("ERROR aiokafka: Fetch failed (OSError: broker away)")


def test_the_same_complaint_is_held_back_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 1000.0
    monkeypatch.setattr("services.common.logs.time.monotonic", lambda: now_s)
    repeats = _Repeats()
    assert repeats.filter(complaint("away"))
    assert not repeats.filter(complaint("away"))
    assert repeats.filter(complaint("another"))
    now_s += 6.0
    assert repeats.filter(complaint("away"))
