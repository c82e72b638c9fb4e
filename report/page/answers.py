"""What a reader asks first: was it kept, what would have kept it, what else could it cost; page and terminal say it."""

from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from report.causes import MEANINGS, cause_title
from report.result import STAGES, CauseOfLateness, Result, Tail
from report.wording import UNKNOWN, count, duration, minutes, over, several, share

STARVED: Final = 0.1
"""Share of a run without a free core from which that is said of a promise that was not kept."""
PLAIN: Final[dict[str, Any]] = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0)}
"""How tables stand on the terminal."""
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
    of, effects, has_journal = result.cost, result.effects, result.has_journal
    ready = of.ready_replica_minutes if of else None
    unknown = "" if has_journal else "no journal tells"
    target = duration(result.latency_target_s)
    lost = f"{several(result.lost, 'event')} lost" if result.lost else "nothing lost"
    lost = "losses are not told by these events" if result.lost is None else lost
    promised = ("p99", result.p99_s) if result.percentile <= 0.99 else ("p99.9", result.p999_s)
    started = f", starts took {duration(result.starts.p50_s)}" if result.starts else ""
    pauses = [one.pause_s for one in result.rebalances.rounds if one.pause_s is not None] if result.rebalances else []
    paused = f", pauses of {duration(max(pauses))} at most" if pauses else ""
    paid = unknown or f"requested; ready {minutes(ready)}{started}"
    plans = f"{result.scale_ups} ▲ {result.scale_downs} ▼ {result.reassignments} ◆" if has_journal else UNKNOWN
    moved = unknown or f"{several(result.moved_partitions or 0, 'partition')} moved{paused}"
    once = UNKNOWN if effects is None else "all" if result.whole else count(effects.exactly_once)
    orders = "not told by these events" if effects is None else f"of {several(effects.orders, 'order')}"
    return [
        ("median", duration(result.p50_s), "half of the events were faster"),
        (promised[0], duration(promised[1]), f"promised {target} for {share(result.percentile)}"),
        ("slowest", duration(result.max_s), lost),
        ("replica-minutes", minutes(result.replica_minutes), paid),
        ("plans", plans, moved),
        ("effects exactly once", once, orders),
    ]


def starved(result: Result) -> str:
    """Return that the machine itself was too small for the run, if it was; else ""."""
    full_s = result.provenance.cores_full_s or 0.0
    if result.kept or full_s < STARVED * result.duration_s:
        return ""
    told = f"All cores of this machine were busy for {full_s:.0f} s of it: what waits for a core is late, too, and each"
    return f"{told} replica takes of it. More cores, or less load, tell more."


def late_by_cause(tail: Tail) -> str:
    """Return "20 burst, 1 handover"."""
    return ", ".join(f"{count(one.events)} {cause_title(one.cause).lower()}" for one in tail.causes)


def _kept(result: Result) -> Answer:
    question = "Was the promise kept?"
    done = f"{share(result.in_sla)} of {several(result.events, 'event')} within {duration(result.latency_target_s)}"
    words = f"{done}; promised were {share(result.percentile)}."
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
        by = late_by_cause(tail)
        told = f"{by[0].upper()}{by[1:]}. {MEANINGS.get(tail.causes[0].cause, '')}" if by else "Not one was late."
        return Answer(question, f"{count(tail.late)} late of {count(allowed)} allowed", told)
    needed: list[CauseOfLateness] = []
    for one in tail.causes:
        if tail.late - sum(cause.events for cause in needed) > allowed:
            needed.append(one)
    if not needed:
        return Answer(question, UNKNOWN, "No late event was found.")
    others = [one for one in result.otherwise or () if one.in_sla >= result.percentile]
    names = " and no ".join(cause_title(one.cause).lower() for one in needed)
    so_many = " and ".join(count(one.events) for one in needed)
    told = f"{count(tail.late)} were late, {count(allowed)} are allowed; {so_many} for that. "
    told += MEANINGS.get(needed[0].cause, "")
    if others:
        least = min(others, key=lambda one: (one.replica_minutes, one.policy))
        told += f" On these events {least.policy} keeps it, for {minutes(least.replica_minutes)} replica-minutes."
    return Answer(question, f"No {names}", f"{told} {starved(result)}".strip())


def _otherwise(result: Result) -> Answer:
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
    least = result.cost.packing_replica_minutes if result.cost else None
    if least is not None and result.cost is not None:
        bars.append(("per-second packing", minutes(least), 100 * least / most, ""))
        told = f"{over(result.cost.over_packing)} over the per-second packing. {told}".strip()
    return Answer(question, f"{minutes(result.replica_minutes)} replica-minutes", told, tuple(bars))


def show(result: Result, console: Console) -> None:
    """Print verdict, key figures, why events were late, and the stages."""
    colour = "green" if result.valid and result.kept and result.whole else "yellow" if result.valid else "red"
    name = f"{result.scenario} · {result.policy} · seed {result.seed}"
    name = result.scenario if result.world == "unknown" else name
    heading = Text.assemble((f"{name}\n", "bold"), (result.verdict, colour))
    figures = Table("", Column(justify="right", style="bold"), "", **PLAIN, show_header=False)
    for row in key_figures(result):
        figures.add_row(*row)
    parts: list[RenderableType] = [heading, Padding(figures, (1, 0))]
    if result.tail and result.tail.causes:
        told = f"{late_by_cause(result.tail)} (of {several(result.tail.late, 'late event')})"
        parts.append(Padding(Text.assemble(("why late  ", "bold"), told), (0, 0, 1, 0)))
    if told := starved(result):
        parts.append(Padding(Text(told, "yellow"), (0, 0, 1, 0)))
    names = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9", "p9999": "p99.99", "max": "max"}
    ranks = [Column(name, justify="right", no_wrap=True) for name in names.values()]
    table = Table("stage", *ranks, **PLAIN, header_style="bold")
    for one in result.stages:
        table.add_row(STAGES.get(one.stage, one.stage), *(duration(getattr(one, f"{name}_s")) for name in names))
    console.print(Group(*parts, table))
    if result.otherwise:
        told = "; ".join(f"{label}: {text}" for label, text, *_ in answers(result)[2].bars)
        console.print(Text.assemble("\n", ("replica-minutes  ", "bold"), told))
