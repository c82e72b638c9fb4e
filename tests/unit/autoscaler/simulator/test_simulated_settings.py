"""Worlds that cannot be are refused, with every reason at once."""

import math

import pytest

from autoscaler.simulator.settings import DeliverySettings, Failure, SimulationSettings


def test_every_value_that_is_out_of_range_is_named():
    with pytest.raises(ValueError, match="pause_s") as refused:
        SimulationSettings(
            delivery=DeliverySettings(pause_s=-1),
            startup_s=math.nan,
            decision_interval_s=0,
            observation_loss=1.5,
            poll_events=0,
            failures=(Failure(1.0), Failure(-2.0)),
        )
    named = [problem.split(" = ")[0] for problem in str(refused.value).split("; ")]
    assert named == [
        "pause_s",
        "startup_s",
        "failures[1].at_s",
        "decision_interval_s",
        "poll_events",
        "observation_loss",
    ]


def test_the_defaults_and_the_limits_are_fine():
    SimulationSettings()
    SimulationSettings(startup_s=None, observation_loss=1.0, delivery=DeliverySettings(pause_s=0, heartbeat_s=0))
