"""Values put over a scenario on the command line."""

import pytest

from bench.scenario import load_scenario
from tailpack.cli.options import parse_changes


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("payment.heartbeat_s=3", "payment.heartbeat_s", 3),
        ("rebalance_time_s = 0.5", "rebalance_time_s", 0.5),
        ("learn_rebalance_time=false", "learn_rebalance_time", False),
        ("payment.runtime=cooperative-sticky", "payment.runtime", "cooperative-sticky"),
        ('policy="linear"', "policy", "linear"),
        ("description=a = b", "description", "a = b"),
    ],
)
def test_a_value_is_what_it_looks_like(text: str, key: str, value: object) -> None:
    assert parse_changes([text]) == {key: value}


def test_a_scenario_takes_them() -> None:
    one = load_scenario("w1", parse_changes(["payment.delivery=eager", "payment.heartbeat_s=3", "seed=7"]))
    assert (one.payment.delivery, one.payment.heartbeat_s, one.seed) == ("eager", 3.0, 7)
