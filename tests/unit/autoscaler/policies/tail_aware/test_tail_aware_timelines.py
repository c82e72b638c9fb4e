"""Tests of tail-aware as timelines of seconds."""

import numpy as np

from autoscaler.model import Action, GroupObservation, PartitionLoad, RecentArrivals, Replica
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.policy import TailAware

MU = 200.0


class Group:
    """A group that carries out every plan at once and serves all that is in time; bursts at whole seconds."""

    def __init__(self, partitions, *, even=False, pause_s=0.05, startup_s=0.0):
        self.policy = TailAware(PolicySettings())
        self.partitions = partitions
        self.even = even
        self.pause_s = pause_s
        self.startup_s = startup_s
        self.second = 0
        self.replicas = {"payment-0": 0.0}
        self.owners = dict.fromkeys(range(partitions), "payment-0")

    def tick(self, counts):
        at_s = self.second + 0.1
        slots = np.zeros((10, self.partitions), np.int64)
        if self.even:
            slots += np.array(counts) // 10
        else:
            slots[-1] = counts
        lags = [0 if self.even else int(0.8 * count) for count in counts]
        decision = self.policy.decide(
            GroupObservation(
                at_s=at_s,
                partitions=tuple(PartitionLoad(p, float(counts[p]), lags[p]) for p in range(self.partitions)),
                replicas=tuple(Replica(name, at_s >= ready_s) for name, ready_s in self.replicas.items()),
                assignment=self.owners,
                service_rate=MU,
                rebalance_time_s=self.pause_s,
                recent=RecentArrivals(0.1, slots),
            )
        )
        self.second += 1
        started = {name: self.replicas.get(name, at_s + self.startup_s) for name in decision.plan.replicas}
        self.replicas, self.owners = started, dict(decision.plan.assignment)
        return decision

    def run(self, counts, seconds):
        return [self.tick(counts) for _ in range(seconds)]

    @property
    def count(self):
        return len(self.replicas)


def test_a_burst_that_one_replica_serves_in_time_needs_no_second():
    group = Group(5)
    assert all(decision.action is Action.NO_CHANGE for decision in group.run([20] * 5, 30))


def test_even_arrivals_need_half_the_replicas_that_bursts_need():
    bursts, even = Group(4), Group(4, even=True)
    bursts.run([40] * 4, 20)
    even.run([40] * 4, 20)
    assert (bursts.count, even.count) == (2, 1)


def test_a_step_is_answered_at_once_with_all_replicas():
    group = Group(5)
    group.run([20] * 5, 20)
    assert group.tick([70] * 5).plan.count == 5


def test_only_necessary_partitions_move():
    group = Group(4)
    group.run([24] * 4, 20)  # 96 in all: one is enough
    decision = group.tick([30, 24, 24, 24])  # 102: two are not late yet
    moved = decision
    for _ in range(5):
        moved = group.tick([40, 24, 24, 24])
        if moved.action is Action.UP:
            break
    assert sum(owner != "payment-0" for owner in group.owners.values()) == 1


def test_flapping_delays_the_next_stop():
    group = Group(4)
    waited = []
    for _ in range(3):
        group.run([40] * 4, 5)
        assert group.count == 2
        quiet = 0
        while group.tick([20] * 4).action is not Action.DOWN:
            quiet += 1
        waited.append(quiet)
    assert waited[0] == 0
    assert waited == sorted(waited)
    assert waited[2] >= 2


def test_a_partition_above_the_service_rate_gets_a_replica_of_its_own_and_no_more():
    group = Group(3)
    group.run([300, 10, 10], 30)
    assert group.count == 2
    assert [p for p, owner in group.owners.items() if owner == group.owners[0]] == [0]


def test_every_partition_always_has_a_planned_owner():
    group = Group(12)
    chance = np.random.default_rng(5)
    for _ in range(80):
        decision = group.tick((chance.pareto(1.5, 12) * 10).astype(int).tolist())
        assert set(decision.plan.assignment) == set(range(12))
        assert set(decision.plan.assignment.values()) <= set(decision.plan.replicas)
        assert decision.plan.count <= 12
