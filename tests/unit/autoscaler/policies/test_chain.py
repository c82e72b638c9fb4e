"""Tests of the values that a stage gets from the previous one."""

from dataclasses import replace

import pytest
from unit.autoscaler.builders import seen

from autoscaler.model import Action, Decision
from autoscaler.policies.chain import ChainedPolicy, Link, ReportingPolicy
from autoscaler.policies.planning import no_change
from autoscaler.policies.settings import PolicySettings
from autoscaler.policies.tail_aware.policy import TailAware
from autoscaler.policies.upstream import Report


class RecordingPolicy:
    """Changes nothing, and records its observations."""

    name = "recording"

    def __init__(self):
        self.observations = []

    def decide(self, observation):
        self.observations.append(observation)
        return no_change(observation, "records")


class LateEvents:
    """A policy with seven late events."""

    late = 7.0


def report(at_s, rates, lags=None, *, plan=None, late=0.0, startup_s=0.0):
    """Return the report of one tick of a stage with one replica, μ = 200 events/s."""
    observation = replace(seen(rates, lags, at_s=at_s), startup_s=startup_s)
    decision = no_change(observation, "as it is") if plan is None else Decision(Action.UP, plan, "more")
    return Report(observation, decision, late)


def test_a_stage_gets_inflow_late_events_and_used_time_from_upstream():
    link, policy = Link(), RecordingPolicy()
    child = ChainedPolicy(policy, link, within_s=1.0, before_s=0.6)
    for second in range(60):
        link.append(report(second + 0.1, [60.0, 40.0], [0, 0], late=2.0))
        child.decide(seen([130.0, 120.0], [0, 0], at_s=second + 0.1))
    last = policy.observations[-1]
    assert last.inflow[0] == pytest.approx(250.0, rel=0.1), "2.5 for each of the 100"
    assert last.late_upstream == 2.0
    assert last.overhead_s < 0.6, "upstream uses only a part of its latency budget"


def test_a_stage_without_a_current_report_uses_only_its_own_observation():
    link, policy = Link(), RecordingPolicy()
    child = ChainedPolicy(policy, link, within_s=1.0, before_s=0.6)
    link.append(report(5.1, [60.0], [0]))
    child.decide(seen([100.0], [0], at_s=0.1))
    assert policy.observations[-1] == replace(seen([100.0], [0], at_s=0.1), overhead_s=0.6), "not the later report"
    child.decide(replace(seen([100.0], [0], at_s=5.1), late_of_removed_replicas={"payment-9": 3}))
    assert policy.observations[-1].inflow
    assert not policy.observations[-1].late_of_removed_replicas, "replicas do not know the used latency budget"
    child.decide(seen([100.0], [0], at_s=9.1))
    assert not policy.observations[-1].inflow, "a report of four seconds ago is too old"


def test_tail_aware_scales_up_before_a_predicted_inflow_arrives():
    settings = PolicySettings(latency_target_s=0.5)
    calm = [seen([10.0] * 4, [0] * 4, at_s=second + 0.1) for second in range(5)]
    alone, informed = TailAware(settings), TailAware(settings)
    for observation in calm:
        alone.decide(observation)
        informed.decide(observation)
    now = seen([10.0] * 4, [0] * 4, at_s=5.1)
    assert alone.decide(now).plan.count == 1
    assert informed.decide(replace(now, inflow=(400.0, 400.0, 400.0))).plan.count > 1


def test_a_stage_reports_the_values_from_upstream_to_the_next_stage():
    link = Link()
    chained = ChainedPolicy(TailAware(PolicySettings(latency_target_s=0.5)), Link(), within_s=0.5, before_s=0.2)
    reporting = ReportingPolicy(chained, link, LateEvents(), chained)
    reporting.decide(seen([10.0], [0], at_s=0.1))
    (sent,) = link
    assert sent.observation == chained.observed
    assert (sent.observation.overhead_s, sent.late) == (0.2, 7.0)
