"""From a scenario to its policy.

Reference policies are told beforehand what others must find out: the size of a bin, the peak, the optimum's schedule.
"""

from collections.abc import Callable
from typing import Any, Final

from autoscaler.optimum.optimum import EXACT
from autoscaler.policies.registry import configured_policy, make_policy
from autoscaler.ports import Policy
from bench.scenario import Scenario
from bench.simulation.build import CLAIRVOYANT, delivery_of, true_service_rate
from bench.simulation.optimum import find_optimum
from bench.simulation.sent import Sent
from contracts.delivery import OUR_DELIVERIES
from contracts.validation import InvalidSettingsError

BIN_SHARE: Final = 0.85
"""Of the events that a replica serves within the target: 85 of 100, as CLOSER 2024 really packed."""


def policy_of(scenario: Scenario, sent: Sent) -> Policy:
    """Return the scenario's policy inside its guards, as a live run has it. Raises InvalidSettingsError.

    sent: the reference policies are told about it beforehand. A clairvoyant has no guards: its schedule is judged.
    """
    try:
        if scenario.autoscaler.policy == CLAIRVOYANT:
            return make_policy(CLAIRVOYANT, options=told(scenario, sent) | scenario.policy)
        return configured_policy(
            scenario.autoscaler,
            scenario.target,
            scenario.guards,
            told(scenario, sent) | scenario.policy,
            counts_only=delivery_of(scenario) not in OUR_DELIVERIES,
            fallback=False,  # a policy that fails shall be seen to fail here
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong


def told(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    """Return options of the scenario's policy that follow from its world and its load; none for most policies."""
    teller = _TELLERS.get(scenario.autoscaler.policy)
    return teller(scenario, sent) if teller else {}


def _bin(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    within_s = min(1.0, scenario.target.latency_target_s)
    return {"bin_events_per_s": round(BIN_SHARE * within_s * true_service_rate(scenario), 9)}


def _peak(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    """Every partition at its own peak: a group that nothing in this run can surprise."""
    if "replicas" in scenario.policy:
        return {}
    return _bin(scenario, sent) | {"peak_rates": tuple(map(float, sent.table().max(axis=0)))}


def _schedule(scenario: Scenario, sent: Sent) -> dict[str, Any]:
    if sent.partitions > EXACT:
        said = f"clairvoyant plans up to {EXACT} partitions, the scenario has {sent.partitions}"
        raise InvalidSettingsError([f"{scenario.name}: {said}"])
    return {"schedule": find_optimum(scenario, sent)[1]}


_TELLERS: Final[dict[str, Callable[[Scenario, Sent], dict[str, Any]]]] = {
    "paper-optimal": _bin,
    "overprovisioned": _peak,
    CLAIRVOYANT: _schedule,
}
