"""The three questions of a report's head: kept, what would have kept it, what it would have cost otherwise."""

import msgspec
from example_report import changed, example, unjournaled

from report.causes import CauseOfLateness, Tail
from report.page.answers import answers, key_figures
from report.result import Otherwise


def test_a_kept_promise_says_how_close_it_was() -> None:
    kept, causes, _ = answers(example())
    assert kept.answer == "Yes"
    assert causes.answer == "8 late of 10 allowed"
    assert causes.words.startswith("5 replica dead, 2 overloaded, 1 handover.")


def test_a_missed_promise_names_the_fewest_causes_without_which_it_is_kept() -> None:
    by = (("burst", 30), ("handover", 6), ("overloaded", 2))
    causes = tuple(CauseOfLateness(cause=cause, events=n, share=n / 38, worst_s=1.0) for cause, n in by)
    other = Otherwise(policy="overprovisioned", in_sla=1.0, replica_minutes=6.0)
    missed = changed(in_sla=1 - 38 / 10_240, tail=Tail(late=38, causes=causes, episodes=()), otherwise=(other,))
    kept, needed, _ = answers(missed)
    assert kept.answer == "No"
    assert needed.question == "What would have kept it?"
    assert needed.answer == "No burst", "the other eight are fewer than the ten that are allowed"
    assert needed.words.startswith("38 were late, 10 are allowed; 30 for that.")
    assert needed.words.endswith("On these events overprovisioned keeps it, for 6.00 replica-minutes.")


def test_a_machine_without_a_free_core_is_told_where_the_promise_was_missed() -> None:
    causes = (CauseOfLateness(cause="burst", events=30, share=1.0, worst_s=1.0),)
    tail = Tail(late=30, causes=causes, episodes=())

    def told(full_s: float | None, in_sla: float) -> bool:
        made = msgspec.structs.replace(example().provenance, cores_full_s=full_s)
        return (
            "All cores of this machine were busy"
            in answers(changed(in_sla=in_sla, tail=tail, provenance=made))[1].words
        )

    length_s = example().duration_s
    assert told(0.5 * length_s, 0.99)
    assert not told(0.01 * length_s, 0.99)
    assert not told(None, 0.99)
    assert not told(0.5 * length_s, 1.0)


def test_other_policies_stand_beside_the_run_and_the_packing() -> None:
    _, _, cost = answers(changed(otherwise=(Otherwise(policy="keda-hpa", in_sla=0.99, replica_minutes=6.0),)))
    assert [(label, text, round(width), kind) for label, text, width, kind in cost.bars] == [
        ("this run, 99.921 %", "3.00", 50, "kept"),
        ("keda-hpa, 99 %", "6.00", 100, "missed"),
        ("per-second packing", "2.31", 38, ""),
    ]
    assert "not replayed" not in cost.words
    assert "not replayed" in answers(example())[2].words


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
