"""The three questions of a report's head: kept, what would have kept it, what it would have cost otherwise."""

from example_report import changed, example, unjournaled

from report.page.answers import answers, key_figures
from report.result import CauseOfLateness, OtherPolicy, Tail


def test_a_kept_promise_says_how_close_it_was() -> None:
    kept, causes, _ = answers(example())
    assert kept.answer == "Yes"
    assert causes.answer == "8 late of 10 allowed"
    assert causes.words.startswith("5 replica dead, 2 overloaded, 1 handover.")


def test_a_missed_promise_names_the_fewest_causes_without_which_it_is_kept() -> None:
    by = (("burst", 30), ("handover", 6), ("overloaded", 2))
    causes = tuple(CauseOfLateness(cause=cause, events=n, share=n / 38, worst_s=1.0) for cause, n in by)
    other = OtherPolicy(policy="overprovisioned", in_sla=1.0, replica_minutes=6.0)
    missed = changed(in_sla=1 - 38 / 10_240, tail=Tail(late=38, causes=causes, episodes=()), otherwise=(other,))
    kept, needed, _ = answers(missed)
    assert kept.answer == "No"
    assert needed.question == "What would have kept it?"
    assert needed.answer == "No burst", "the other eight are fewer than the ten that are allowed"
    assert needed.words.startswith("38 were late, 10 are allowed; 30 for that.")
    assert needed.words.endswith("On these events overprovisioned keeps it, for 6.00 replica-minutes.")


def test_what_nobody_can_know_is_a_dash_with_its_reason() -> None:
    _, causes, cost = answers(unjournaled())
    assert (causes.answer, cost.answer) == ("–", "–")
    assert "nothing tells who received" in causes.words
    assert "without a journal" in cost.words
    assert key_figures(unjournaled())[2][2] == "losses are not told by these events"
    unknown = {label: note for label, text, note in key_figures(unjournaled()) if text == "–"}
    assert unknown == {
        "replica-minutes": "no journal tells",
        "plans": "no journal tells",
        "effects exactly once": "not told by these events",
    }
