"""A live autoscaler and a scenario that are told the same have the same policy inside the same guards."""

from typing import Any

import pytest

from autoscaler.live.composition import policy_from
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.guards.faults import Fallback
from autoscaler.policies.guards.limits import CountsOnly
from autoscaler.policies.tail_aware.policy import TailAware
from bench.scenario import load_scenario
from bench.simulation.run import policy_of
from bench.simulation.sent_events import build_events
from contracts.validation import InvalidSettingsError

LIMITS = {"f_up": 0.8, "f_down": 0.3, "min_replicas": 2, "max_replicas": 4, "initial_replicas": 3}
LIMITS |= {"cool_down_up_s": 5.0, "cool_down_down_s": 7.0, "latency_target_s": 0.7, "percentile": 0.99}


def live(policy: str, options: str = "", **told: Any) -> Any:
    return policy_from(
        AutoscalerSettings(policy=policy, payment_partitions=5, state_dir="state", policy_options=options, **told)
    )


def simulated(policy: str, **told: Any) -> Any:
    scenario = load_scenario("w1", {"autoscaler.policy": policy, **told})
    return policy_of(scenario, build_events(scenario))


def layers(policy: Any) -> list[tuple[type, Any]]:
    """Return guards and policy from the outside in: what each is, and the plain values that it was told."""
    found = []
    while policy is not None:
        told = {name: value for name, value in vars(policy).items() if isinstance(value, str | int | float)}
        settings = {name: getattr(policy, name, None) for name in ("settings", "options")}
        found.append((type(policy), told | settings))
        policy = getattr(policy, "policy", None)
    return found


@pytest.mark.parametrize("told", [{}, LIMITS], ids=["defaults", "limits"])
@pytest.mark.parametrize("policy", ["algorithm-2", "linear", "static", "tail-aware"])
def test_both_worlds_have_the_same_policy_in_the_same_guards(policy: str, told: dict[str, Any]) -> None:
    alive, simulation = layers(live(policy, **told)), layers(simulated(policy, **told))
    assert [one for one in alive if one[0] is not Fallback] == simulation
    assert Fallback in dict(alive), "live, the last good plan stays; in a simulation a failure shall be seen"


def test_the_policys_own_options_reach_it_in_both() -> None:
    for policy in live("tail-aware", '{"patience_s": 5}'), simulated("tail-aware", **{"policy.patience_s": 5}):
        (options,) = [one["options"] for kind, one in layers(policy) if kind is TailAware]
        assert options.patience_s == 5


def test_another_runtime_is_told_counts_only_in_both() -> None:
    for policy in live("linear", runtime="kip848"), simulated("linear", runtime="kip848"):
        assert CountsOnly in dict(layers(policy))


def test_mistakes_are_named_in_both() -> None:
    with pytest.raises(ValueError, match="patience: unknown; did you mean patience_s"):
        live("tail-aware", '{"patience": 5}')
    with pytest.raises(InvalidSettingsError, match="w1: policy tail-aware: patience: unknown; did you mean patience_s"):
        simulated("tail-aware", **{"policy.patience": 5})
    with pytest.raises(ValueError, match=r"f_down = 0\.4: is more than f_up"):
        live("linear", f_up=0.2)
