"""How plans are delivered, as a scenario says it."""

import pytest

from bench.scenario import load_scenario, scenario_names
from contracts.rebalance_protocol import RUNTIMES


@pytest.mark.parametrize("name", scenario_names())
def test_only_what_was_published_keeps_a_fixed_rebalance_time(name: str) -> None:
    scaling = load_scenario(name).autoscaler
    assert scaling.learn_rebalance_time is not name.startswith(("w1", "taxi", "w3", "w4"))
    assert scaling.rebalance_time_s == {"stops-500ms": 0.5, "stops-3s": 3.0}.get(name, 0.05)


def test_live_a_delivery_that_names_a_runtime_means_that_runtime() -> None:
    for runtime in RUNTIMES:
        asked = load_scenario("w1", {"rebalance_protocol": runtime, "policy": "linear"})
        live = asked.for_live().payment
        assert (asked.payment.rebalance_protocol, asked.payment.runtime) == (runtime, "")
        assert (live.rebalance_protocol, live.runtime) == ("incremental", runtime)
    ours = load_scenario("w1", {"rebalance_protocol": "eager"})
    assert ours.for_live() == ours
