"""Incremental and KIP-848 rebalances, computed by hand: starts of events, and paid times of replicas."""

from unit.autoscaler.simulator.worlds import Story

from autoscaler.model import Action
from autoscaler.simulator.chance import Heartbeats
from contracts.rebalance_protocol import RebalanceProtocol

BURST = [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0), (0, 1)]
"""Replica 0 alone starts event k at 10·k ms."""


def test_a_moved_partition_pauses_and_the_other_does_not():
    story = Story(BURST, pause_s=0.05).at(15).plan([0, 1])
    # event 1, of the moved partition, is in service until 20: the next one of it may start at 20 + 50
    assert story.served() == [(0, 0), (10, 0), (20, 0), (70, 1), (30, 0), (80, 1)]


def test_the_previous_owner_serves_until_the_new_one_is_ready():
    story = Story(BURST, pause_s=0.05, startup_s=0.025).at(5).plan([0, 1])
    # ready at 30, when event 3 is about to start at replica 0: it does not
    assert story.served() == [(0, 0), (10, 0), (20, 0), (80, 1), (30, 0), (90, 1)]
    assert story.paid_ms() == [(0, 1), (5, 2)]


def test_a_removed_replica_is_paid_until_its_last_event_is_finished():
    story = Story([(0, 0), (0, 1), (0, 0), (0, 1)], initial_replicas=2, pause_s=0.05).at(15).plan([0, 0])
    assert story.names() == ("payment-0",)
    # replica 1 finishes event 3 at 20; partition 1 has nothing left to serve
    assert story.served() == [(0, 0), (0, 1), (10, 0), (10, 1)]
    assert story.paid_ms() == [(0, 2), (20, 1)]


def test_a_partition_in_its_pause_can_be_redirected_and_pauses_again():
    story = Story(BURST, pause_s=0.05, initial_replicas=1).at(5).plan([0, 1]).at(25).plan([0, 2])
    assert story.served() == [(0, 0), (75, 2), (10, 0), (85, 2), (20, 0), (95, 2)]
    assert story.paid_ms() == [(0, 1), (5, 2)], "one was requested at 25, and one without partitions left"


def test_kip848_moves_a_partition_at_heartbeats_of_both_owners():
    beats = Heartbeats(500_000, seed=1)
    story = Story(
        [(at, at // 20 % 2) for at in range(0, 3000, 20)], rebalance_protocol=RebalanceProtocol.KIP848, heartbeat_s=0.5
    )
    story.at(100).plan([0, 1])
    served = story.served()
    stops_ms = beats.next_us(0, 100_000) / 1000
    moved = [(at, by) for (at, by), k in zip(served, range(len(served)), strict=True) if k % 2]
    last_ms = max(at for at, by in moved if by == 0) + 10
    first_ms = min(at for at, by in moved if by == 1)
    assert stops_ms - 40 <= last_ms - 10 < stops_ms
    assert first_ms == beats.next_us(1, round(max(stops_ms, last_ms) * 1000)) / 1000
    assert all(at - 20.0 * (2 * k) < 10 for k, (at, _) in enumerate(served[0::2])), "the other partition never waits"


def test_a_plan_with_a_count_places_partitions_when_a_replica_is_ready():
    story = Story([], startup_s=2.0, partitions=4).at(100).plan(None, replicas=[0, 1], action=Action.UP)
    assert set(story.observe().assignment.values()) == {"payment-0"}
    story.at(2100)
    assert dict(story.observe().assignment) == {0: "payment-0", 1: "payment-0", 2: "payment-1", 3: "payment-1"}
    (change,) = story.group.changes
    assert (change.at_s, change.action, change.replicas, change.moved) == (0.1, Action.UP, 2, 2)
