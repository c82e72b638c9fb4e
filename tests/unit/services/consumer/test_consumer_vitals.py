"""What a replica tells of itself while something is wrong with it."""

from types import SimpleNamespace
from typing import Any

import pytest
from consumer_fakes import TOPIC

from contracts.progress import ReplicaState, ServiceTimes
from services.consumer.interface import Options, Topics
from services.consumer.lease import Lease
from services.consumer.partition_queue import PartitionQueues
from services.consumer.vitals import LONGEST_TOLD, MOST_TOLD, Vitals


class Replica:
    """Vitals over queues and a lease of its own; the rest is at rest."""

    def __init__(self, state: ReplicaState = ReplicaState.MEMBER) -> None:
        self.now_s = 0.0
        self.lease = Lease(6.0, 10.0, lambda: self.now_s)
        self.queues = PartitionQueues(per_partition=1, batch_size=1)
        none: Any = SimpleNamespace(
            confirmed_s=float("inf"), longest_s=lambda: 0.0, service_times=ServiceTimes, processed=0, failed=0,
            retried=0, rounds=0, taken=0, released=0, timings=[], state=state, member_id="", generation=1,
            plans=SimpleNamespace(newest=None), assignor=SimpleNamespace(last=SimpleNamespace(epoch=0)),
            consumer=SimpleNamespace(highwater=lambda at: None),
        )  # fmt: skip
        self.vitals = Vitals(
            replica="one", incarnation="1", topics=Topics(group="g", events=TOPIC, plans="", progress=""),
            options=Options(), clients=none, queues=self.queues, server=none, lease=self.lease, committer=none,
            handover=none, membership=none, busy_s=lambda: 0.0,
        )  # fmt: skip

    def metric(self, name: str) -> float:
        return next(one.samples[0].value for one in self.vitals.collect() if one.name == f"tailpack_consumer_{name}")


@pytest.mark.parametrize("partitions", [1, 0])
def test_a_lease_that_is_out_is_told_for_as_long_as_it_is(partitions):
    """Also by a member that serves nothing: it would begin nothing of what it is given."""
    one = Replica()
    one.queues.open(dict.fromkeys(range(partitions), 0), epoch=1)
    assert one.vitals.health().ok
    for one.now_s in (7.0, 8.0):
        (reason,) = one.vitals.health().reasons
        assert f"not confirmed the membership for {one.now_s:.1f} s" in reason
        assert one.vitals.progress().unwell == (reason,)
        assert (one.metric("well"), one.metric("lease_out")) == (0, 1)
    one.lease.renew(8.0)
    assert one.vitals.health().ok
    assert one.vitals.progress().unwell == ()
    assert (one.metric("well"), one.metric("lease_out")) == (1, 0)


def test_who_is_no_member_has_no_lease_to_lose():
    one = Replica(ReplicaState.WARM)
    one.now_s = 100.0
    assert one.vitals.health().ok


def test_partitions_that_are_cut_off_are_reported_in_few_words_however_many():
    one = Replica()
    one.queues.open(dict.fromkeys(range(1000), 0), epoch=1)
    for partition in range(1000):
        one.queues.cut_off(partition, "x" * 1000)
    told = one.vitals.progress().unwell
    assert told[0].startswith("partition 0 is not served on: x")
    assert (len(told), told[-1]) == (MOST_TOLD + 1, f"{1000 - MOST_TOLD} more of the kind")
    assert max(map(len, told)) == LONGEST_TOLD
    assert len(one.vitals.health().reasons) == 1000
