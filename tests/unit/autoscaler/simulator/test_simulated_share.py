"""Share groups, computed by hand: one queue for all replicas."""

from unit.autoscaler.simulator.worlds import Story

from autoscaler.simulator.settings import Failure
from contracts.rebalance_protocol import RebalanceProtocol

SHARE = {"rebalance_protocol": RebalanceProtocol.SHARE}
BURST = [(0, 0), (0, 0), (0, 0), (0, 0), (0, 1), (0, 1)]


def test_every_free_replica_takes_the_oldest_event_whatever_its_partition():
    story = Story(BURST, **SHARE, initial_replicas=2)
    assert story.served() == [(0, 0), (0, 1), (10, 0), (10, 1), (20, 0), (20, 1)]


def test_a_leaving_replica_finishes_its_acquired_event():
    story = Story(BURST, **SHARE, initial_replicas=2).at(15).plan([0, 0])
    assert story.served() == [(0, 0), (0, 1), (10, 0), (10, 1), (20, 0), (30, 0)]
    assert story.paid_ms() == [(0, 2), (20, 1)]


def test_the_acquired_event_of_a_dead_replica_is_served_by_another_one():
    story = Story(BURST, **SHARE, initial_replicas=2, failures=(Failure(0.015),), eviction_s=0.03)
    # replica 0 dies with event 2 in service; it is given back at 45, when all else is done
    assert story.served() == [(0, 0), (0, 1), (45, 1), (10, 1), (20, 1), (30, 1)]
