"""The settings of the simulator that follow from a scenario."""

import pytest

from bench.scenario import load_scenario
from bench.simulation.sent_events import settings_of
from contracts.rebalance_protocol import RUNTIMES, RebalanceProtocol


def world(**changes: object):
    return settings_of(load_scenario("w1", {key.replace("__", "."): value for key, value in changes.items()}))


def test_the_rebalance_time_is_the_pause_of_a_moved_partition_or_the_stop_of_the_group() -> None:
    incremental, eager = world(rebalance_time_s=2), world(rebalance_time_s=2, rebalance_protocol="eager", heartbeat_s=3)
    assert incremental.rebalance.pause_s == 2
    found = eager.rebalance
    assert (found.rebalance_protocol, found.rebalance_time_s, found.heartbeat_s) == ("eager", 2, 3)
    assert incremental.planned_rebalance_time_s == eager.planned_rebalance_time_s == 2


@pytest.mark.parametrize("protocol", RebalanceProtocol)
def test_every_rebalance_protocol_can_be_simulated_by_either_key(protocol) -> None:
    assert world(rebalance_protocol=protocol.value).rebalance.rebalance_protocol is protocol
    if protocol in RUNTIMES:
        assert world(runtime=protocol.value, policy="linear").rebalance.rebalance_protocol is protocol
