"""From a scenario to what the simulator is told: settings of the world, and the policy inside its guards."""

from dataclasses import replace
from typing import Final

from autoscaler.policies.configured import configured_policy
from autoscaler.ports import Policy
from autoscaler.simulator.settings import DeliverySettings, Failure, Observing, ServiceSettings, SimulationSettings
from bench.scenario import Scenario
from bench.simulation.foresight import told
from bench.simulation.sent import Sent
from contracts.delivery import RUNTIMES, Delivery
from contracts.membership import Work
from contracts.settings import picked
from contracts.validation import InvalidSettingsError

CLAIRVOYANT: Final = "clairvoyant"


def delivery_of(scenario: Scenario) -> Delivery:
    """Return how plans are carried out, whichever of its two keys says so; the schedule of the bound has its own."""
    if scenario.autoscaler.policy == CLAIRVOYANT:
        return Delivery.INCREMENTAL
    return Delivery(scenario.payment.runtime or scenario.payment.delivery)


def settings_of(scenario: Scenario) -> SimulationSettings:
    """Return the world that the scenario describes. Raises InvalidSettingsError."""
    world, scaling, payment = scenario.simulation, scenario.autoscaler, scenario.payment
    try:
        settings = SimulationSettings(
            service=ServiceSettings(**picked(world, ServiceSettings), **picked(payment, Work)),
            delivery=DeliverySettings(
                delivery=delivery_of(scenario),
                pause_s=scaling.rebalance_time_s if world.pause_s is None else world.pause_s,
                rebalance_time_s=scaling.rebalance_time_s,
                heartbeat_s=payment.heartbeat_s,
                whole_batches=world.whole_batches,
            ),
            **picked(world, Observing),
            startup_s=None if world.startup_s == "gke" else world.startup_s,
            decision_interval_s=scaling.decision_interval_s,
            tick_offset_s=scaling.tick_offset_s,
            initial_replicas=scaling.initial_replicas,
            planned_rebalance_time_s=None if scaling.learn_rebalance_time else scaling.rebalance_time_s,
            failures=tuple(Failure(at_s, world.failures_known) for at_s in world.failures_s),
            session_s=payment.session_s,
            seed=scenario.seed,
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong
    return _free_of_charge(settings) if scaling.policy == CLAIRVOYANT else settings


def policy_of(scenario: Scenario, sent: Sent) -> Policy:
    """Return the scenario's policy inside its guards, as a live run has it. Raises InvalidSettingsError.

    sent: the reference policies are told about it beforehand.
    """
    try:
        return configured_policy(
            scenario.autoscaler,
            scenario.target,
            scenario.guards,
            told(scenario, sent) | scenario.policy,
            counts_only=delivery_of(scenario) in RUNTIMES,
            fallback=False,  # a policy that fails shall be seen to fail here
        )
    except ValueError as wrong:
        raise InvalidSettingsError([f"{scenario.name}: {wrong}"]) from wrong


def _free_of_charge(settings: SimulationSettings) -> SimulationSettings:
    """Return the world of the schedule of the bound: each second is arranged at its very start, and at no cost."""
    delivery = replace(settings.delivery, pause_s=0.0)
    return replace(settings, delivery=delivery, startup_s=0.0, decision_interval_s=1.0, tick_offset_s=0.0)
