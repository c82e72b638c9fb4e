"""Eager and cooperative-sticky rebalances, computed by hand: which partitions pause, and for how long."""

import math
from itertools import pairwise

from unit.autoscaler.simulator.worlds import Story

from autoscaler.simulator.chance import Heartbeats
from autoscaler.simulator.settings import Failure
from contracts.rebalance_protocol import RebalanceProtocol

BURST = [(0, 0), (0, 1), (0, 0), (0, 1), (0, 0), (0, 1)]
EAGER = {"rebalance_protocol": RebalanceProtocol.EAGER, "rebalance_time_s": 0.1}
COOPERATIVE = {"rebalance_protocol": RebalanceProtocol.COOPERATIVE_STICKY, "rebalance_time_s": 0.1}


def test_eager_stops_the_whole_group_for_the_rebalance_time():
    story = Story(BURST, **EAGER).at(15).plan([0, 1])
    # event 1 is in service until 20: only then the member joins the rebalance, which takes 100
    assert story.served() == [(0, 0), (10, 0), (120, 0), (120, 1), (130, 0), (130, 1)]


def test_eager_members_serve_until_their_own_heartbeat_and_start_together():
    beats = Heartbeats(500_000, seed=1)
    backlog = [(0, k % 2) for k in range(400)]
    story = Story(backlog, **EAGER, heartbeat_s=0.5, initial_replicas=2).at(1000).plan([1, 0])
    served = story.served()
    joins_ms = []
    for member in (0, 1):
        notices_ms = beats.next_us(member, 1_000_000) / 1000
        joins_ms.append(math.ceil(notices_ms / 10) * 10)  # it serves on until then: an event ends every 10 ms
    assert joins_ms[0] != joins_ms[1]
    restart_ms = max(joins_ms) + 100
    for member in (0, 1):
        own = [at for at, by in served if by == member]
        assert max(at for at in own if at < restart_ms) == joins_ms[member] - 10
        assert min(at for at in own if at >= restart_ms) == restart_ms


def test_the_members_of_a_led_eager_group_notice_a_plan_together_and_pause_for_the_rebalance_only():
    led = EAGER | {"rebalance_protocol": RebalanceProtocol.LED_EAGER}
    backlog = [(0, k % 2) for k in range(400)]
    story = Story(backlog, **led, heartbeat_s=0.5, initial_replicas=2).at(1000).plan([1, 0])
    notices_ms = Heartbeats(500_000, seed=1, in_phase=True).next_us(1, 1_000_000) / 1000
    served = story.served()
    for member in (0, 1):
        own = [at for at, by in served if by == member]
        pause_ms, began = max((after - before, before) for before, after in pairwise(own))
        assert notices_ms - 20 < began <= notices_ms
        assert 100 <= pause_ms <= 120


def test_a_plan_during_a_rebalance_waits_for_the_next_one():
    story = Story(BURST, **EAGER).at(15).plan([0, 1]).at(50).plan([1, 0])
    # the first rebalance ends at 120, the second follows at once: all members stop again
    served = story.served()
    assert served[2:] == [(220, 1), (220, 0), (230, 1), (230, 0)]


def test_cooperative_sticky_stops_only_moving_partitions_after_the_first_rebalance():
    steady = [(at, at // 20 % 2) for at in range(0, 400, 20)]
    story = Story(steady, **COOPERATIVE).at(5).plan([0, 1])
    served = story.served()
    # the first rebalance ends at 105: event 5 (intended 100) of the moved partition is in service until 110 then
    assert served[5] == (100, 0)
    assert served[7] == (210, 1), "the second rebalance: all have joined at 110, and it takes 100"
    assert [at for at, _ in served[0::2]] == [40.0 * k for k in range(10)]


def test_a_rebalance_waits_for_a_dead_member_until_it_is_evicted():
    story = Story(
        [(at, at // 20 % 2) for at in range(0, 1000, 20)],
        **EAGER,
        initial_replicas=3,
        session_s=0.3,
        failures=(Failure(0.0, known=False),),
    )
    story.at(50).plan([2, 1], replicas=[1, 2])
    starts = [at for at, _ in story.served() if at > 50]
    assert min(starts) == 400, "evicted at 300, and the rebalance takes 100"
