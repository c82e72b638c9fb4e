"""tail-aware second by second."""

import re

import numpy as np
import pytest

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
    assert all(decision.action is Action.HOLD for decision in group.run([20] * 5, 30))


def test_even_arrivals_need_half_the_replicas_that_bursts_need():
    bursts, even = Group(4), Group(4, even=True)
    bursts.run([40] * 4, 20)
    even.run([40] * 4, 20)
    assert (bursts.count, even.count) == (2, 1)


def test_a_step_is_answered_at_the_first_tick_that_sees_it_and_in_one_go():
    group = Group(5)
    group.run([20] * 5, 20)
    assert group.tick([70] * 5).plan.count == 5


def test_only_what_must_moves():
    group = Group(4)
    group.run([24] * 4, 20)  # 96 in all: one is enough
    decision = group.tick([30, 24, 24, 24])  # 102: two are not late yet
    moved = decision
    for _ in range(5):
        moved = group.tick([40, 24, 24, 24])
        if moved.action is Action.UP:
            break
    assert sum(owner != "payment-0" for owner in group.owners.values()) == 1


def test_flapping_makes_the_next_stop_wait():
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


def test_handovers_that_take_long_are_few_and_early():
    quick, slow = Group(5), Group(5, pause_s=2.0)
    first = {}
    for second in range(100):
        for name, group in (("quick", quick), ("slow", slow)):
            if group.tick([10 + second // 4] * 5).action is not Action.HOLD:
                first.setdefault(name, second)
    assert first["slow"] < first["quick"]


def test_replicas_that_start_slowly_are_asked_for_early():
    slow, quick = Group(5, startup_s=20.0), Group(5)
    third = {}
    for second in range(240):
        for name, group in (("slow", slow), ("quick", quick)):
            if group.tick([10 + second // 8] * 5).plan.count >= 3:
                third.setdefault(name, second)
    assert third["slow"] + 5 <= third["quick"]  # the first start-up has taught how long the second takes


def test_the_reason_compares_with_staying_as_it_is():
    group = Group(5)
    group.run([20] * 5, 5)
    plan = r"\d+ replicas? [\d.]+ % in time at cost [\d.]+"

    up = group.tick([70] * 5).reason
    assert re.match(rf"[\d.]+ events expected per interval; with {plan}, staying with 1 {plan[4:]}: up 1 → ", up)
    calm = group.tick([70] * 5).reason
    assert re.match(rf"[\d.]+ events expected per interval; with {plan}, with {plan}: hold", calm)


def test_every_partition_has_an_owner_among_the_planned_replicas_whatever_comes():
    group = Group(12)
    chance = np.random.default_rng(5)
    for _ in range(80):
        decision = group.tick((chance.pareto(1.5, 12) * 10).astype(int).tolist())
        assert set(decision.plan.assignment) == set(range(12))
        assert set(decision.plan.assignment.values()) <= set(decision.plan.replicas)
        assert decision.plan.count <= 12


@pytest.mark.parametrize("counts", [[0, 0, 0], [1, 0, 0]])
def test_silence_needs_one_replica(counts):
    group = Group(3)
    group.run([90, 90, 90], 5)
    group.run(counts, 10)
    assert group.count == 1
