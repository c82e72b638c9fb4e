"""The decisions of an autoscaler as text."""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from autoscaler.page.decisions import NO_CHANGE, Decided, Decisions
from contracts.journal import JournalEntry, PlanAlternative
from report.wording import duration, share

WOULD: Final = "would: "
"""Begin of the reasons of an autoscaler that only observes."""
DAY_S: Final = 86_400
MAX_ALTERNATIVES: Final = 5
MOVED_LISTED: Final = 8


def explain(entries: Iterable[JournalEntry]) -> list[Decided]:
    """Return every decision of a journal, oldest first. Consecutive decisions to change nothing are folded."""
    found = Decisions(most=sys.maxsize)
    for entry in entries:
        found.record(entry)
    return [*found.rows.values()]


def lines(one: Decided) -> Iterator[str]:
    """Yield a decision as lines of text, the first of which has time and change."""
    before, after = one.replicas
    what = f"{one.action} {before} → {_replicas(after)}" if before != after else one.action
    what = f"would {what}" if one.why.startswith(WOULD) else what
    what = f"no change ×{one.times} at {_replicas(after)}" if one.action == NO_CHANGE else what
    moves = [f"p{partition} → {owner}" for partition, owner in one.moves]
    moved = ", ".join(moves[:MOVED_LISTED]) + (", …" if len(moves) > MOVED_LISTED else "")
    yield f"{clock(one.at_us)}  {what}, plan {one.epoch}" + (f"; {len(moves)} moved: {moved}" if moves else "")
    yield f"  why       {one.why}"
    if one.rails:
        yield f"  rails     {', '.join(one.rails)}; without: {_replicas(one.uncapped)}"
    for plan in one.compared[:MAX_ALTERNATIVES]:
        yield f"  compared  {_prediction(plan)}"
    if one.effect is not None:
        parts = [f"{one.waiting} → {one.effect[0]} events waiting", f"{_replicas(one.effect[1])} ready"]
        parts += [f"{name} ready after {duration(took_s)}" for name, took_s in one.started]
        yield f"  after 10 s  {', '.join(parts)}"
    for problem in one.problems:
        yield f"  problem   {problem}"


def why_not(one: Decided, count: int) -> str:
    """Return the prediction for another replica count beside that of the chosen plan."""
    found = next((_prediction(plan) for plan in one.compared if plan.replicas == count), "")
    others = ", ".join(dict.fromkeys(str(plan.replicas) for plan in one.compared)) or "none: it follows a rule"
    chosen = "".join(f"; chosen: {_prediction(plan)}" for plan in one.compared[:1])
    return f"  why not   {found or f'{count} was not compared; the counts are {others}'}{chosen}"


def clock(at_us: int) -> str:
    """Return the time of day in UTC: "14:03:12"."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%H:%M:%S")


def select(found: Sequence[Decided], which: str) -> list[Decided]:
    """Return the decisions that a user asks for. Raises ValueError with one sentence.

    which: `last` (the last change and what follows it), `all`, the epoch of a plan, or a time HH:MM:SS in UTC.
    """
    if which == "all" or not found:
        return list(found)
    if which == "last":
        last = max((at for at, one in enumerate(found) if one.action != NO_CHANGE), default=0)
        return list(found[last:])
    if which.isdecimal():
        wanted: Callable[[Decided], bool] = lambda one: one.epoch == int(which)  # noqa: E731
        return _first(found, wanted, f"no decision led to plan {which}")
    try:
        of_day = datetime.strptime(f"1970 {which}", "%Y %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"{which!r} is neither last, all, the epoch of a plan nor a time HH:MM:SS") from None
    last_s = found[-1].last_us // 1_000_000
    wanted_s = last_s - (last_s - of_day.timestamp()) % DAY_S  # the latest such time that the journal reaches
    reach = f"{clock(found[0].at_us)} to {clock(found[-1].last_us)}"
    problem = f"the journal has no decision at or before {which} UTC; it reaches from {reach}"
    return _first(found[::-1], lambda one: one.at_us // 1_000_000 <= wanted_s, problem)


def _first(found: Iterable[Decided], wanted: Callable[[Decided], bool], problem: str) -> list[Decided]:
    for one in found:
        if wanted(one):
            return [one]
    raise ValueError(problem)


def _prediction(plan: PlanAlternative) -> str:
    result = f"{share(plan.in_sla)} in time at cost {plan.cost_s:.1f}"
    return f"{_replicas(plan.replicas)}, {plan.moved} moved: {result}"


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"
