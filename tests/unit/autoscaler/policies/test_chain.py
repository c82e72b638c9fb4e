"""What a stage is told of the one before it."""

from dataclasses import replace

import pytest
from unit.autoscaler.builders import seen

from autoscaler.model import Action, Decision
from autoscaler.policies.chain import ChainedPolicy, Link, ReportingPolicy
from autoscaler.policies.planning import no_change
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.policies.upstream import Report


class Listening:
    """Holds, and keeps what it was told."""

    name = "listening"

    def __init__(self):
        self.told = []

    def decide(self, observation):
        self.told.append(observation)
        return no_change(observation, "listens")


class Spender:
    """Took seven events for late."""

    late = 7.0


def report(at_s, rates, lags=None, *, plan=None, late=0.0, startup_s=0.0):
    """One tick of a stage of one replica, μ = 200 events/s."""
    observation = replace(seen(rates, lags, at_s=at_s), startup_s=startup_s)
    decision = no_change(observation, "as it is") if plan is None else Decision(Action.UP, plan, "more")
    return Report(observation, decision, late)


def test_branching_is_measured_and_what_comes_is_told():
    link, policy = Link(), Listening()
    child = ChainedPolicy(policy, link, within_s=1.0, before_s=0.6)
    for second in range(60):
        link.append(report(second + 0.1, [60.0, 40.0], [0, 0], late=2.0))
        child.decide(seen([130.0, 120.0], [0, 0], at_s=second + 0.1))
    last = policy.told[-1]
    assert last.inflow[0] == pytest.approx(250.0, rel=0.1), "2.5 for each of the 100"
    assert last.late_upstream == 2.0
    assert last.overhead_s < 0.6, "the stage before leaves most of its part"


def test_without_news_from_upstream_a_stage_sees_itself_only():
    link, policy = Link(), Listening()
    child = ChainedPolicy(policy, link, within_s=1.0, before_s=0.6)
    link.append(report(5.1, [60.0], [0]))
    child.decide(seen([100.0], [0], at_s=0.1))
    assert policy.told[-1] == replace(seen([100.0], [0], at_s=0.1), overhead_s=0.6), "later ticks are not looked at"
    child.decide(replace(seen([100.0], [0], at_s=5.1), late_of_removed_replicas={"payment-9": 3}))
    assert policy.told[-1].inflow
    assert not policy.told[-1].late_of_removed_replicas, "they know when an event came here, not what it had left"
    child.decide(seen([100.0], [0], at_s=9.1))
    assert not policy.told[-1].inflow, "the tick of four seconds ago says nothing of now"


def test_what_is_told_makes_tail_aware_ready_before_it_comes():
    settings = PolicySettings(latency_target_s=0.5)
    calm = [seen([10.0] * 4, [0] * 4, at_s=second + 0.1) for second in range(5)]
    alone, told = TailAware(settings), TailAware(settings)
    for observation in calm:
        alone.decide(observation)
        told.decide(observation)
    now = seen([10.0] * 4, [0] * 4, at_s=5.1)
    assert alone.decide(now).plan.count == 1
    assert told.decide(replace(now, inflow=(400.0, 400.0, 400.0))).plan.count > 1


def test_what_is_known_goes_on_to_the_stage_after_the_next():
    link = Link()
    chained = ChainedPolicy(TailAware(PolicySettings(latency_target_s=0.5)), Link(), within_s=0.5, before_s=0.2)
    reporting = ReportingPolicy(chained, link, Spender(), chained)
    reporting.decide(seen([10.0], [0], at_s=0.1))
    (sent,) = link
    assert sent.observation == chained.told
    assert sent.observation.overhead_s == 0.2
    assert sent.late == 7.0
