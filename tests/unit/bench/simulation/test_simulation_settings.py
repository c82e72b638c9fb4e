"""The settings of the simulator that follow from a scenario."""

import pytest

from bench.scenario import load_scenario
from bench.simulation.sent_events import settings_of
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol


def world(**changes: object):
    return settings_of(load_scenario("w1", {key.replace("__", "."): value for key, value in changes.items()}))


def test_the_rebalance_time_is_the_pause_of_a_moved_partition_or_the_stop_of_the_group() -> None:
    incremental, eager = world(rebalance_time_s=2), world(rebalance_time_s=2, rebalance_protocol="eager", heartbeat_s=3)
    assert incremental.rebalance_protocol.pause_s == 2
    assert (
        eager.rebalance_protocol.rebalance_protocol,
        eager.rebalance_protocol.rebalance_time_s,
        eager.rebalance_protocol.heartbeat_s,
    ) == ("eager", 2, 3)
    assert incremental.planned_rebalance_time_s == eager.planned_rebalance_time_s == 2


@pytest.mark.parametrize("rebalance_protocol", RebalanceProtocol)
def test_every_delivery_can_be_simulated_by_either_key(rebalance_protocol) -> None:
    assert (
        world(rebalance_protocol=rebalance_protocol.value).rebalance_protocol.rebalance_protocol is rebalance_protocol
    )
    if rebalance_protocol in RUNTIMES:
        assert (
            world(runtime=rebalance_protocol.value, policy="linear").rebalance_protocol.rebalance_protocol
            is rebalance_protocol
        )
