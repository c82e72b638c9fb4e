"""Tests of policies by name, with shared settings and their own options."""

import pytest
from unit.autoscaler.builders import seen

from autoscaler.model import Action
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import PolicySettings


def test_an_unknown_name_raises_an_error_with_a_suggestion():
    with pytest.raises(ValueError, match="algorithm-3") as raised:
        make_policy("algorithm-3")

    assert str(raised.value) == "policy 'algorithm-3' is unknown; did you mean algorithm-2?"


def test_options_override_the_shared_settings():
    settings = PolicySettings(f_up=0.5, f_down=0.2)
    busy = seen([110, 0])

    assert make_policy("algorithm-1", settings).decide(seen([60, 50])).action is Action.UP
    assert make_policy("algorithm-1", settings, options={"f_up": 1}).decide(busy).action is Action.NO_CHANGE
    assert make_policy("static", settings, options={"static_replicas": 2}).decide(busy).plan.count == 2


@pytest.mark.parametrize(
    ("name", "options", "problem"),
    [
        ("keda-hpa", {"lag_threshold": 1.5}, "lag_threshold = 1.5: Expected `int`, got `float`"),
        ("keda-hpa", {"sync_s": -1}, "sync_s = -1: must be at least 0 s, at most 86400 s"),
        ("linear", {"f_up": 0.3}, "f_down = 0.4: is more than f_up = 0.3: the group would shrink and grow in turn"),
        ("clairvoyant", {}, "schedule: missing"),
        ("clairvoyant", {"schedule": 3}, "schedule = 3: Expected `array`, got `int`"),
        ("overprovisioned", {}, "peak_rates: missing"),
    ],
)
def test_a_wrong_or_missing_option_is_named(name, options, problem):
    with pytest.raises(ValueError, match="policy") as raised:
        make_policy(name, options=options)

    assert str(raised.value) == f"policy {name}: {problem}"
