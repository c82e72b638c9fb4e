"""The three answers at the head of a report: the used error budget, the causes, and a policy that does better."""

import msgspec
import pytest
from example_report import changed, example

from report.page.answers import NO_SCENARIO, answers
from report.result import CauseOfLateness, OtherPolicy, Tail

CAUSES = tuple(
    CauseOfLateness(cause=cause, events=n, share=n / 38, worst_s=1.0)
    for cause, n in (("burst", 30), ("handover", 6), ("overloaded", 2))
)
OTHERS = tuple(
    OtherPolicy(policy=policy, in_sla=in_sla, replica_minutes=cost)
    for policy, in_sla, cost in (
        ("overprovisioned", 1.0, 2.2), ("keda-hpa", 0.97, 2.0), ("linear", 1.0, 4.0), ("tail-aware", 0.9995, 2.5),
    )
)  # fmt: skip
UNMET = changed(
    in_sla=1 - 38 / 10_240, replica_minutes=2.0, tail=Tail(late=38, causes=CAUSES, episodes=()), other_policies=OTHERS
)


def test_a_met_slo_shows_the_used_error_budget() -> None:
    budget, causes, advice = answers(example())
    assert (budget.answer, [bar[1] for bar in budget.bars]) == ("80 %", ["10", "8"])
    assert causes.words.startswith("5 replica dead, 2 overloaded, 1 handover.")
    assert "--others" in advice.words


def test_an_unmet_slo_names_the_fewest_causes_that_broke_it() -> None:
    budget, main, _ = answers(UNMET)
    assert budget.answer == "380 %"
    assert main.answer == "Burst", "the other eight are fewer than the ten that are allowed"
    assert main.words.startswith("30 burst, 6 handover, 2 overloaded.")


def test_the_advice_is_the_cheapest_policy_that_meets_the_slo_and_knows_no_future() -> None:
    advice = answers(UNMET)[2]
    assert advice.answer == "tail-aware"
    assert advice.words.endswith("99.95 % in time for 2.50 replica-minutes (+25.0 %).")
    assert advice.command == "tailpack run --scenario demo --set seed=1 --policy tail-aware"
    none = answers(changed(in_sla=UNMET.in_sla, other_policies=OTHERS[:2]))[2]
    assert (none.answer, none.command) == ("None of these", "")
    assert "knows the peak" in none.words
    met = answers(changed(replica_minutes=2.3, other_policies=OTHERS))[2]
    assert met.words.endswith("meets the SLO for less. overprovisioned does, but it knows the peak in advance.")


@pytest.mark.parametrize(
    ("command", "advised"),
    [
        ("tailpack run w1 --out 'my runs/x' --policy=linear", "tailpack run w1 --policy tail-aware"),
        ("tailpack run w1 --set policy.f_up=2 --set=autoscaler.policy=linear --set seed=1",
         "tailpack run w1 --set seed=1 --policy tail-aware"),
        ("tailpack simulate --trace 'my trace.csv'", "tailpack simulate --trace 'my trace.csv' --policy tail-aware"),
        ("tailpack report out/x", ""), ("tailpack run 'w1", ""), ("", ""),
    ],
)  # fmt: skip
def test_the_advised_command_can_be_run(command: str, advised: str) -> None:
    made = msgspec.structs.replace(UNMET.provenance, command=command)
    assert answers(msgspec.structs.replace(UNMET, provenance=made))[2].command == advised


def test_a_budget_that_is_exceeded_by_one_event_is_not_used_to_100_percent() -> None:
    assert answers(changed(events=1_000_000, in_sla=1 - 1001e-6))[0].answer == "101 %"


def test_no_simulation_of_events_without_a_scenario_is_advised() -> None:
    assert answers(changed(world="unknown"))[2].words == NO_SCENARIO
