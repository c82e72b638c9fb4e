"""The three answers at the head of a report: whether the SLO was met, why not, and what other policies cost."""

from example_report import changed, example

from report.page.answers import answers
from report.result import CauseOfLateness, OtherPolicy, Tail


def test_a_met_slo_shows_the_used_error_budget() -> None:
    slo, causes, _ = answers(example())
    assert slo.answer == "Yes"
    assert causes.answer == "8 late of 10 allowed"
    assert causes.words.startswith("5 replica dead, 2 overloaded, 1 handover.")


def test_an_unmet_slo_names_the_fewest_causes_that_broke_it() -> None:
    by = (("burst", 30), ("handover", 6), ("overloaded", 2))
    causes = tuple(CauseOfLateness(cause=cause, events=n, share=n / 38, worst_s=1.0) for cause, n in by)
    other = OtherPolicy(policy="overprovisioned", in_sla=1.0, replica_minutes=6.0)
    unmet = changed(in_sla=1 - 38 / 10_240, tail=Tail(late=38, causes=causes, episodes=()), other_policies=(other,))
    slo, main, _ = answers(unmet)
    assert slo.answer == "No"
    assert main.answer == "Burst", "the other eight are fewer than the ten that are allowed"
    assert main.words.startswith("38 events were late, 10 are allowed; 30 ")
    assert "overprovisioned" in main.words
    assert main.words.endswith(" 6.00 replica-minutes.")
