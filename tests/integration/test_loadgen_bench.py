"""`tailpack bench loadgen` says what others rely on, of loads that were really sent."""

import json

import command_line
import pytest

pytestmark = [pytest.mark.kafka, pytest.mark.long]


def test_the_quick_form_has_its_figures():
    found = json.loads(command_line.run("bench", "loadgen", "--quick", "--json").stdout)
    assert 0 < found["within_2ms"] <= 1
    assert found["lateness_p99_s"] > 0
    assert 0 <= found["on_time_per_s"] < found["max_rate_per_s"]
