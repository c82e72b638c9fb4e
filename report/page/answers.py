"""Answer the three main questions about a run: whether the SLO was met, why not, and what it cost."""

from dataclasses import dataclass
from typing import Any, Final

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from report.causes import MEANINGS, cause_title
from report.result import STAGES, CauseOfLateness, Result, Tail
from report.wording import UNKNOWN, count, duration, minutes, over, plural, share

MIN_STARVED_SHARE: Final = 0.1
"""If all cores were busy for at least this share of a run that did not meet its SLO, the report warns of it."""
TABLE_STYLE: Final[dict[str, Any]] = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0)}
"""Style of tables on the terminal."""
Bar = tuple[str, str, float, str]
"""Label, text, length in percent, and CSS class: met, not-met or empty."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with a short answer, an explanation in one or two sentences, and bars for comparison."""

    question: str
    answer: str
    words: str
    bars: tuple[Bar, ...] = ()


def answers(result: Result) -> list[Answer]:
    """Return the three answers at the head of the page."""
    return [_slo(result), _causes(result, result.tail), _other_costs(result)]


def key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Return label, text and note of the six key figures."""
    of, effects, has_journal = result.cost, result.effects, result.has_journal
    ready = of.ready_replica_minutes if of else None
    unknown = "" if has_journal else "no journal"
    target = duration(result.latency_target_s)
    lost = f"{plural(result.lost, 'event')} lost" if result.lost else "no event lost"
    lost = "these events do not record losses" if result.lost is None else lost
    rank, rank_s = ("p99", result.p99_s) if result.percentile <= 0.99 else ("p99.9", result.p999_s)
    started = f", median start-up {duration(result.starts.p50_s)}" if result.starts else ""
    rebalances = result.rebalances.records if result.rebalances else ()
    pauses = [rebalance.pause_s for rebalance in rebalances if rebalance.pause_s is not None]
    paused = f", longest pause {duration(max(pauses))}" if pauses else ""
    paid = unknown or f"requested; ready {minutes(ready)}{started}"
    plans = f"{result.scale_ups} ▲ {result.scale_downs} ▼ {result.reassignments} ◆" if has_journal else UNKNOWN
    moved = unknown or f"{plural(result.moved_partitions or 0, 'partition')} moved{paused}"
    once = UNKNOWN if effects is None else "all" if result.effects_complete else count(effects.exactly_once)
    orders = "these events do not record effects" if effects is None else f"of {plural(effects.orders, 'order')}"
    return [
        ("median", duration(result.p50_s), "half of the events were faster"),
        (rank, duration(rank_s), f"SLO: {share(result.percentile)} within {target}"),
        ("slowest", duration(result.max_s), lost),
        ("replica-minutes", minutes(result.replica_minutes), paid),
        ("plans", plans, moved),
        ("effects exactly once", once, orders),
    ]


def cpu_warning(result: Result) -> str:
    """Return a warning if the cores of the machine were saturated and the SLO was not met; else ""."""
    full_s = result.provenance.cores_full_s or 0.0
    if result.slo_met or full_s < MIN_STARVED_SHARE * result.duration_s:
        return ""
    busy = f"All cores of this machine were busy for {full_s:.0f} s of the run, so events also waited for a core."
    return f"{busy} Use more cores or a lower load."


def late_by_cause(tail: Tail) -> str:
    """Return the late events by cause as text: "20 burst, 1 handover"."""
    return ", ".join(f"{count(cause.events)} {cause_title(cause.cause).lower()}" for cause in tail.causes)


def _slo(result: Result) -> Answer:
    question = "Was the SLO met?"
    done = f"{share(result.in_sla)} of {plural(result.events, 'event')} within {duration(result.latency_target_s)}"
    words = f"{done}; target: {share(result.percentile)}."
    if not result.valid:
        return Answer(question, "The measurement is not valid", words)
    if not result.effects_complete:
        return Answer(question, "Some orders lack an effect or have one twice", words)
    world = " in simulation" if result.world == "simulated" else ""
    return Answer(question, ("Yes" if result.slo_met else "No") + world, words)


def _causes(result: Result, tail: Tail | None) -> Answer:
    question = "What used the error budget?" if result.slo_met else "Why was the SLO not met?"
    if tail is None:
        return Answer(question, UNKNOWN, "Not known: these events record neither a replica nor its time of receipt.")
    allowed = int((1 - result.percentile) * result.events + 1e-6)
    if result.slo_met:
        by = late_by_cause(tail)
        words = f"{by}. {MEANINGS.get(tail.causes[0].cause, '')}" if by else "No event was late."
        return Answer(question, f"{count(tail.late)} late of {count(allowed)} allowed", words)
    main: list[CauseOfLateness] = []  # the largest causes; without them the SLO would have been met
    for cause in tail.causes:
        if tail.late - sum(found.events for found in main) > allowed:
            main.append(cause)
    if not main:
        return Answer(question, UNKNOWN, "No late event was found.")
    others = [policy for policy in result.other_policies or () if policy.in_sla >= result.percentile]
    names = " and ".join(cause_title(cause.cause).lower() for cause in main)
    events = " and ".join(count(cause.events) for cause in main)
    words = f"{count(tail.late)} events were late, {count(allowed)} are allowed; {events} by {names}. "
    words += MEANINGS.get(main[0].cause, "")
    if others:
        least = min(others, key=lambda policy: (policy.replica_minutes, policy.policy))
        words += f" On these events {least.policy} meets the SLO with {minutes(least.replica_minutes)} replica-minutes."
    return Answer(question, names.capitalize(), f"{words} {cpu_warning(result)}".strip())


def _other_costs(result: Result) -> Answer:
    question = "What would other policies have cost?"
    if result.replica_minutes is None:
        return Answer(question, UNKNOWN, "The requested replicas are not known: these events have no journal.")
    costs = [("this run", result.replica_minutes, result.in_sla)]
    costs += [(policy.policy, policy.replica_minutes, policy.in_sla) for policy in result.other_policies or ()]
    most = max(cost for _, cost, _ in costs) or 1.0
    bars: list[Bar] = [
        (f"{name}, {share(part)}", minutes(cost), 100 * cost / most, "met" if part >= result.percentile else "not-met")
        for name, cost, part in costs
    ]
    words = "" if result.other_policies else "Other policies were not simulated on these events."
    least = result.cost.packing_replica_minutes if result.cost else None
    if least is not None and result.cost is not None:
        bars.append(("per-second packing", minutes(least), 100 * least / most, ""))
        words = f"{over(result.cost.over_packing)} over the per-second packing. {words}".strip()
    return Answer(question, f"{minutes(result.replica_minutes)} replica-minutes", words, tuple(bars))


def show(result: Result, console: Console) -> None:
    """Print the verdict, key figures, causes of late events and stages."""
    colour = "green" if result.slo_met and result.effects_complete else "yellow"
    colour = colour if result.valid else "red"
    name = f"{result.scenario} · {result.policy} · seed {result.seed}"
    name = result.scenario if result.world == "unknown" else name
    heading = Text.assemble((f"{name}\n", "bold"), (result.verdict, colour))
    figures = Table("", Column(justify="right", style="bold"), "", **TABLE_STYLE, show_header=False)
    for row in key_figures(result):
        figures.add_row(*row)
    parts: list[RenderableType] = [heading, Padding(figures, (1, 0))]
    if result.tail and result.tail.causes:
        causes = f"{late_by_cause(result.tail)} (of {plural(result.tail.late, 'late event')})"
        parts.append(Padding(Text.assemble(("causes of late events  ", "bold"), causes), (0, 0, 1, 0)))
    if warning := cpu_warning(result):
        parts.append(Padding(Text(warning, "yellow"), (0, 0, 1, 0)))
    names = {"p50": "p50", "p90": "p90", "p95": "p95", "p99": "p99", "p999": "p99.9", "p9999": "p99.99", "max": "max"}
    ranks = [Column(name, justify="right", no_wrap=True) for name in names.values()]
    table = Table("stage", *ranks, **TABLE_STYLE, header_style="bold")
    for stage in result.stages:
        table.add_row(STAGES.get(stage.stage, stage.stage), *(duration(getattr(stage, f"{name}_s")) for name in names))
    console.print(Group(*parts, table))
    if result.other_policies:
        costs = "; ".join(f"{label}: {text}" for label, text, *_ in answers(result)[2].bars)
        console.print(Text.assemble("\n", ("replica-minutes  ", "bold"), costs))
