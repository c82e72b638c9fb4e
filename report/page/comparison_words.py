"""A comparison of runs in words: the verdict, what does not stand, and how its intervals are to be read."""

from collections.abc import Sequence
from typing import Final

from report.page.contest import Contest, Pair
from report.page.run_comparison import RunDifference, SameEvents, ScenarioCompared
from report.wording import duration, minutes, share

POINTS: Final = 100
"""Percentage points of a share of 1."""
METHOD: Final = (
    "Intervals hold 95 % of 10,000 seeded bootstrap draws; where one holds 0, the two are not distinguishable. "
    "Over seeds, whole pairs of runs of the same seed are drawn: it tells how further seeds would come out, and with "
    "fewer than six pairs it spans little more than what was seen. Over seconds, blocks of seconds of a single pair "
    "are drawn, the same of both runs: it tells whether a difference would stand had other seconds like these been "
    "met, and not how another run would differ, with another seed, on another machine, on another day."
)


def problems(contest: Contest, lone: Sequence[tuple[Pair, SameEvents]]) -> list[str]:
    """Return why something does not stand or could not be compared.

    lone: pairs that are the only ones of their contestants.
    """
    found = [
        f"{one.result.run}: not a valid measurement, because {' and '.join(one.result.problems)}"
        for runs in contest.contestants.values()
        for one in runs
        if not one.result.valid
    ]
    if len(contest.contestants) == 1:
        found.append(f"{contest.scenario}: only {contest.reference} met this load: nothing to compare")
    found += [
        f"{contest.scenario}: {label} and {contest.reference} have no seed in common"
        for label in contest.contestants
        if not contest.pairs(label)
    ]
    for (one, other), same in lone:
        if same.paired < same.of:
            found.append(
                f"{one.result.run} and {other.result.run} did not meet the same events: {share(same.paired / same.of)} "
                "of them have place and intended time in common"
            )
    return found


def sentence(one: ScenarioCompared) -> str:
    """Return who keeps the promise, who is on the front, and what can be told apart."""
    kept = [each.label for each in one.contestants if each.in_sla.mean >= one.percentile]
    front = [contestant.label for contestant in one.contestants if contestant.on_front]
    name = ", ".join([one.scenario, *one.settings])
    said = [f"{each.label} against {each.reference}: {_said(each)}" for each in one.differences]
    promise = f"{share(one.percentile)} within {duration(one.latency_target_s)}"
    return f"{name}: {promise} is kept by {', '.join(kept) or 'nobody'}; on the Pareto front " + (
        f"{'is' if len(front) == 1 else 'are'} {'; '.join([', '.join(front), *said])}."
    )


def _said(one: RunDifference) -> str:
    told = [
        f"in SLA {POINTS * one.in_sla.mean:+.3f} points".replace("-", "−") if one.in_sla.distinguishable else "",
        *(
            f"{name} {'+' if value.mean > 0 else '−'}{duration(abs(value.mean))}"
            for name, value in (("p99", one.p99_s), ("p99.9", one.p999_s))
            if value is not None and value.distinguishable
        ),
        f"{'+' if one.replica_minutes.mean > 0 else '−'}{minutes(abs(one.replica_minutes.mean))} replica-minutes"
        if one.replica_minutes.distinguishable
        else "",
    ]
    return ", ".join(text for text in told if text) or "not distinguishable"
