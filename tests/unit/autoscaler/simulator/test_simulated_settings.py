"""Worlds that cannot be are refused, with every reason at once."""

from autoscaler.simulator.settings import DeliverySettings, SimulationSettings


def test_the_defaults_and_the_limits_are_fine():
    SimulationSettings()
    SimulationSettings(startup_s=None, observation_loss=1.0, delivery=DeliverySettings(pause_s=0, heartbeat_s=0))
