"""What a reader asks first: was the promise kept, what would have kept it, what would it have cost otherwise."""

from dataclasses import dataclass

from report.causes import meaning, title
from report.result import CauseOfLateness, Result, Tail
from report.wording import UNKNOWN, count, duration, minutes, over, several, share

Bar = tuple[str, str, float, str]
"""Label, text, length in percent, and class: kept, missed or neither."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with its answer in a few words, bars that compare, and a sentence."""

    question: str
    answer: str
    words: str
    bars: tuple[Bar, ...] = ()


def answers(result: Result) -> list[Answer]:
    """Return the three questions of the page's head."""
    return [_kept(result), _causes(result, result.tail), _otherwise(result)]


def key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Return label, text and note of the six figures that say most."""
    of, effects, journaled = result.cost, result.effects, result.journaled
    ready = of.ready_replica_minutes if of else None
    unknown = "" if journaled else "no journal tells"
    target = duration(result.latency_target_s)
    return [
        ("median", duration(result.p50_s), "half of the events were faster"),
        ("p99.9", duration(result.p999_s), f"promised {target} for {share(result.percentile)}"),
        ("slowest", duration(result.max_s), f"{several(result.lost, 'event')} lost" if result.lost else "nothing lost"),
        (
            "replica-minutes",
            minutes(result.replica_minutes),
            unknown or f"requested; ready {minutes(ready)}",
        ),
        (
            "plans",
            f"{result.scale_ups} ▲ {result.scale_downs} ▼ {result.reassignments} ◆" if journaled else UNKNOWN,
            unknown or f"{several(result.moved_partitions, 'partition')} moved",
        ),
        (
            "effects exactly once",
            UNKNOWN if effects is None else "all" if result.whole else count(effects.exactly_once),
            "not told by these events" if effects is None else f"of {several(effects.orders, 'order')}",
        ),
    ]


def late_by_cause(tail: Tail) -> str:
    """Return "20 burst, 1 handover"."""
    return ", ".join(f"{count(one.events)} {title(one.cause).lower()}" for one in tail.causes)


def _kept(result: Result) -> Answer:
    question = "Was the promise kept?"
    words = (
        f"{share(result.in_sla)} of {several(result.events, 'event')} within {duration(result.latency_target_s)}; "
        f"promised were {share(result.percentile)}."
    )
    if not result.valid:
        return Answer(question, "This measurement does not stand", words)
    if not result.whole:
        return Answer(question, "Not every effect came exactly once", words)
    where = " in simulation" if result.world == "simulated" else ""
    return Answer(question, ("Yes" if result.kept else "No") + where, words)


def _causes(result: Result, tail: Tail | None) -> Answer:
    """Return what is to be mended: the fewest causes without whose events the promise is kept."""
    question = "What came closest to breaking it?" if result.kept else "What would have kept it?"
    if tail is None:
        return Answer(question, UNKNOWN, "Causes are not known: nothing tells who received these events, and when.")
    allowed = int((1 - result.percentile) * result.events + 1e-6)
    if result.kept:
        told = (
            f"{late_by_cause(tail)[0].upper()}{late_by_cause(tail)[1:]}. {meaning(tail.causes[0].cause)}"
            if tail.causes
            else "Not one was late."
        )
        return Answer(question, f"{count(tail.late)} late of {count(allowed)} allowed", told)
    needed: list[CauseOfLateness] = []
    for one in tail.causes:
        if tail.late - sum(cause.events for cause in needed) > allowed:
            needed.append(one)
    if not needed:
        return Answer(question, UNKNOWN, "No late event was found.")
    keep = sorted(
        (one.replica_minutes, one.policy) for one in result.otherwise or () if one.in_sla >= result.percentile
    )
    names = " and no ".join(title(one.cause).lower() for one in needed)
    told = (
        f"{count(tail.late)} were late, {count(allowed)} are allowed; "
        f"{' and '.join(count(one.events) for one in needed)} for that. {meaning(needed[0].cause)}"
    )
    if keep:
        told += f" On these events {keep[0][1]} keeps it, for {minutes(keep[0][0])} replica-minutes."
    return Answer(question, f"No {names}", told)


def _otherwise(result: Result) -> Answer:
    """Return what this run cost beside the bound and what other policies cost on the same events."""
    question = "What would it have cost otherwise?"
    if result.replica_minutes is None:
        return Answer(question, UNKNOWN, "What was requested is not known: these events came without a journal.")
    costs = [("this run", result.replica_minutes, result.in_sla)]
    costs += [(one.policy, one.replica_minutes, one.in_sla) for one in result.otherwise or ()]
    most = max(cost for _, cost, _ in costs) or 1.0
    bars: list[Bar] = [
        (f"{name}, {share(kept)}", minutes(cost), 100 * cost / most, "kept" if kept >= result.percentile else "missed")
        for name, cost, kept in costs
    ]
    told = "" if result.otherwise else "Other policies were not replayed on these events."
    least = result.cost.bound_replica_minutes if result.cost else None
    if least is not None and result.cost is not None:
        bars.append(("the least, with foresight", minutes(least), 100 * least / most, ""))
        told = f"{over(result.cost.regret)} over that least. {told}".strip()
    return Answer(question, f"{minutes(result.replica_minutes)} replica-minutes", told, tuple(bars))
