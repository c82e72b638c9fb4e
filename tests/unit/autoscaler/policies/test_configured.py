"""Equal settings give the same policy in the same guards, live and simulated."""

from typing import Any

import pytest

from autoscaler.live.configuration import policy_config_of
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.bin_packing import BinPacking
from autoscaler.policies.guards.faults import Fallback
from autoscaler.policies.guards.limits import CountsOnly
from autoscaler.policies.tail_aware.policy import TailAware
from bench.scenario import load_scenario
from bench.simulation.run import policy_of
from bench.simulation.sent_events import build_events
from contracts.validation import InvalidSettingsError

LIMITS = {"f_up": 0.8, "f_down": 0.3, "min_replicas": 2, "max_replicas": 4, "initial_replicas": 3}
LIMITS |= {"cool_down_up_s": 5.0, "cool_down_down_s": 7.0, "latency_target_s": 0.7, "percentile": 0.99}


def live(policy: str, options: str = "", **settings: Any) -> Any:
    own = AutoscalerSettings(policy=policy, payment_partitions=5, state_dir="state", policy_options=options, **settings)
    return policy_config_of(own).policy()


def simulated(policy: str, **settings: Any) -> Any:
    scenario = load_scenario("w1", {"autoscaler.policy": policy, **settings})
    return policy_of(scenario, build_events(scenario))


def layers(policy: Any) -> list[tuple[type, Any]]:
    """Return guards and policy from the outside in: the type of each, and its plain settings."""
    found = []
    while policy is not None:
        plain = {name: value for name, value in vars(policy).items() if isinstance(value, str | int | float)}
        settings = {name: getattr(policy, name, None) for name in ("settings", "options")}
        found.append((type(policy), plain | settings))
        policy = getattr(policy, "policy", None)
    return found


@pytest.mark.parametrize("settings", [{}, LIMITS], ids=["defaults", "limits"])
@pytest.mark.parametrize("policy", ["algorithm-2", "linear", "static", "tail-aware"])
def test_live_and_simulated_runs_have_the_same_policy_in_the_same_guards(policy: str, settings: dict[str, Any]) -> None:
    alive, simulation = layers(live(policy, **settings)), layers(simulated(policy, **settings))
    assert [one for one in alive if one[0] is not Fallback] == simulation
    assert Fallback in dict(alive), "only live: a failure in a simulation must be visible"


def test_options_of_the_policy_are_passed_in_both_and_override_shared_settings() -> None:
    for policy in live("tail-aware", '{"keep_s": 5}'), simulated("tail-aware", **{"policy.keep_s": 5}):
        (options,) = [one["options"] for kind, one in layers(policy) if kind is TailAware]
        assert options.keep_s == 5
    (packing,) = [one for kind, one in layers(live("algorithm-1", '{"f_up": 1}', f_up=0.5)) if kind is BinPacking]
    assert packing["settings"].f_up == 1


def test_another_runtime_gets_only_counts_in_both() -> None:
    for policy in live("linear", runtime="kip848"), simulated("linear", runtime="kip848"):
        assert CountsOnly in dict(layers(policy))


def test_wrong_settings_are_named_in_both() -> None:
    with pytest.raises(ValueError, match="keep: unknown; did you mean keep_s"):
        live("tail-aware", '{"keep": 5}')
    with pytest.raises(InvalidSettingsError, match="w1: policy tail-aware: keep: unknown; did you mean keep_s"):
        simulated("tail-aware", **{"policy.keep": 5})
    with pytest.raises(ValueError, match="must be a JSON object"):
        live("tail-aware", "{")
    with pytest.raises(ValueError, match="policy 'algorithm-3' is unknown; did you mean algorithm-2"):
        live("algorithm-3")
    with pytest.raises(ValueError, match=r"policy keda-hpa: sync_s = -1: must be at least 0 s, at most 86400 s"):
        live("keda-hpa", '{"sync_s": -1}')
    with pytest.raises(ValueError, match=r"f_down = 0\.4: .* f_up"):
        live("linear", f_up=0.2)
