"""Deaths of replicas: when they are noticed, and which replicas serve on."""

from unit.autoscaler.simulator.worlds import Story

from autoscaler.simulator.settings import Failure

STEADY = [(at, at // 20 % 2) for at in range(0, 2000, 20)]
"""Partition 0 at 0, 40, 80, …; partition 1 at 20, 60, …"""


def dying(at_s=0.105, *, known=True, **how):
    """Return a story with partition p on replica p, and the death of the older replica."""
    return Story(STEADY, initial_replicas=2, failures=(Failure(at_s, known=known),), pause_s=0.05, **how)


def test_a_known_death_delays_events_by_eviction_and_pause():
    story = dying(eviction_s=0.1)
    story.at(104)
    assert story.names() == ("payment-0", "payment-1")
    story.at(110)
    assert story.names() == ("payment-1",), "the policy observes it at once"
    story.at(205)
    assert dict(story.observe().assignment) == {0: "payment-1", 1: "payment-1"}
    served = story.served()
    assert story.paid_ms() == [(0, 2), (105, 1)]
    assert [served[k] for k in (4, 6, 8)] == [(80, 0), (255, 1), (265, 1)], "evicted at 205, then the pause"
    assert {by for _, by in served[6::2]} == {1}


def test_an_unannounced_death_is_observed_when_the_session_expires():
    story = dying(known=False, session_s=0.5)
    story.at(600)
    assert story.names() == ("payment-0", "payment-1")
    assert story.lags()[0] > 10
    story.at(610)
    assert story.names() == ("payment-1",)
    served = story.served()
    assert story.paid_ms() == [(0, 2), (605, 1)]
    assert served[6] == (655, 1)


def test_a_partition_that_moves_to_a_dying_replica_goes_to_another_one():
    story = Story(STEADY, failures=(Failure(0.12),), pause_s=0.05, eviction_s=0.1)
    story.at(100).plan([1, 1], replicas=[0, 1])  # in their pause until 150 when replica 1 dies
    served = story.served()
    assert {by for _, by in served} == {0}
    # the group gives them to replica 1 at 150 all the same, and to replica 0 when it has been evicted at 220
    assert min(at for at, _ in served[5:]) == 270
