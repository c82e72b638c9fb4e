"""A scenario's words become the simulated world's settings."""

import pytest

from bench.scenario import load_scenario
from bench.simulation.sent import settings_of
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol


def world(**changes: object):
    return settings_of(load_scenario("w1", {key.replace("__", "."): value for key, value in changes.items()}))


def test_the_rebalance_time_is_the_pause_of_a_moved_partition_or_the_stop_of_the_group() -> None:
    incremental, eager = world(rebalance_time_s=2), world(rebalance_time_s=2, delivery="eager", heartbeat_s=3)
    assert incremental.delivery.pause_s == 2
    assert (eager.delivery.delivery, eager.delivery.rebalance_time_s, eager.delivery.heartbeat_s) == ("eager", 2, 3)
    assert incremental.planned_rebalance_time_s == eager.planned_rebalance_time_s == 2


@pytest.mark.parametrize("delivery", RebalanceProtocol)
def test_every_delivery_can_be_simulated_by_either_key(delivery) -> None:
    assert world(delivery=delivery.value).delivery.delivery is delivery
    if delivery in RUNTIMES:
        assert world(runtime=delivery.value, policy="linear").delivery.delivery is delivery
