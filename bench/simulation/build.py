"""From a scenario to the settings of the simulator."""

from typing import Final

from autoscaler.simulator.settings import DeliverySettings, Failure, Observing, ServiceSettings, SimulationSettings
from bench.scenario import Scenario
from contracts.delivery import Delivery
from contracts.membership import Work
from contracts.settings import picked
from contracts.validation import InvalidSettingsError
from loadgen.schedule import Spacing
from report.measures import bin_capacity

CLAIRVOYANT: Final = "clairvoyant"


def delivery_of(scenario: Scenario) -> Delivery:
    """Return how plans are carried out, by either of the two keys; for a clairvoyant it is incremental."""
    return Delivery.INCREMENTAL if scenario.autoscaler.policy == CLAIRVOYANT else asked_delivery(scenario)


def asked_delivery(scenario: Scenario) -> Delivery:
    """Return how plans are carried out under any policy but clairvoyant."""
    return Delivery(scenario.payment.runtime or scenario.payment.delivery)


def settings_of(scenario: Scenario) -> SimulationSettings:
    """Return the world that the scenario describes. Raises InvalidSettingsError, also where W is too short to serve."""
    world, scaling, payment = scenario.simulation, scenario.autoscaler, scenario.payment
    try:
        bin_capacity(
            service_rate=true_service_rate(scenario),
            latency_target_s=scenario.target.latency_target_s,
            bursts=scenario.load.spacing is Spacing.BURST,
        )
        return SimulationSettings(
            service=ServiceSettings(**picked(world, ServiceSettings), **picked(payment, Work)),
            delivery=DeliverySettings(
                delivery=delivery_of(scenario),
                pause_s=scaling.rebalance_time_s if world.pause_s is None else world.pause_s,
                rebalance_time_s=scaling.rebalance_time_s,
                heartbeat_s=payment.heartbeat_s,
            ),
            **picked(world, Observing),
            startup_s=None if world.startup_s == "gke" else world.startup_s,
            latency_target_s=scenario.target.latency_target_s,
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


def true_service_rate(scenario: Scenario) -> float:
    """Return μ in events/s of a replica of speed 1."""
    return 1 / (scenario.payment.service_time_s + scenario.simulation.overhead_s)
