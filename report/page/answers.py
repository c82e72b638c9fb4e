"""Answer the three main questions about a run: how much of the error budget it used, why, and what would do better."""

import shlex
from dataclasses import dataclass
from math import ceil
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
NO_SCENARIO: Final = "Events without a scenario cannot be simulated under other policies."
FORESIGHTED: Final = "overprovisioned"
"""A policy that knows the peak in advance, so it cannot run on new events."""
Bar = tuple[str, str, float, str]
"""Label, text, length in percent, and CSS class: met, not-met or empty."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A question with a short answer, an explanation in one or two sentences, and bars for comparison."""

    question: str
    answer: str
    words: str
    bars: tuple[Bar, ...] = ()
    command: str = ""
    """Command that follows the advice."""


def answers(result: Result) -> list[Answer]:
    """Return the three answers at the head of the page."""
    return [_budget(result), _causes(result, result.tail), _advice(result)]


def key_figures(result: Result) -> list[tuple[str, str, str]]:
    """Return label, text and note of the six key figures."""
    of, effects, has_journal = result.cost, result.effects, result.has_journal
    ready = of.ready_replica_minutes if of else None
    unknown = "" if has_journal else "no journal"
    rank, rank_s, slower = ("p99", result.p99_s, 100) if result.percentile <= 0.99 else ("p99.9", result.p999_s, 1000)
    started = f", median start-up {duration(result.starts.p50_s)}" if result.starts else ""
    rebalances = result.rebalances.records if result.rebalances else ()
    pauses = [rebalance.pause_s for rebalance in rebalances if rebalance.pause_s is not None]
    paused = f", longest pause {duration(max(pauses))}" if pauses else ""
    paid = unknown or f"requested; ready {minutes(ready)}{started}"
    plans = f"{result.scale_ups} ▲ {result.scale_downs} ▼ {result.reassignments} ◆" if has_journal else UNKNOWN
    moved = unknown or f"{plural(result.moved_partitions or 0, 'partition')} moved{paused}"
    kept = ("events lost", count(result.lost), "these events do not record losses" if result.lost is None else "")
    if effects:
        once = "all" if result.effects_complete else count(effects.exactly_once)
        kept = ("effects exactly once", once, f"of {plural(effects.orders, 'order')}")
    return [
        ("median", duration(result.p50_s), "half of the events were faster"),
        (rank, duration(rank_s), f"1 in {slower:,} was slower"),
        ("slowest", duration(result.max_s), ""),
        ("replica-minutes", minutes(result.replica_minutes), paid),
        ("plans", plans, moved),
        kept,
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


def _budget(result: Result) -> Answer:
    late, allowed = result.events - round(result.in_sla * result.events), _allowed(result)
    most, mood = max(late, allowed, 1), "met" if result.slo_met else "not-met"
    bars = ("allowed", count(allowed), 100 * allowed / most, ""), ("late", count(late), 100 * late / most, mood)
    used = f"{ceil(100 * late / allowed - 1e-9):,} %" if allowed else f"{count(late)} late"
    return Answer("How much of the error budget was used?", used, "", bars)


def _allowed(result: Result) -> int:
    """Return the number of events that may be late."""
    return int((1 - result.percentile) * result.events + 1e-6)


def _causes(result: Result, tail: Tail | None) -> Answer:
    question = "Why were events late?"
    if tail is None:
        return Answer(question, UNKNOWN, "Not known: these events record neither a replica nor its time of receipt.")
    if not tail.causes:
        return Answer(question, "None was late", "")
    main: list[CauseOfLateness] = []  # if the SLO was not met: the largest causes without which it would have been
    for cause in tail.causes:
        if not main or (not result.slo_met and tail.late - sum(found.events for found in main) > _allowed(result)):
            main.append(cause)
    names = " and ".join(cause_title(cause.cause).lower() for cause in main)
    words = f"{late_by_cause(tail)}. {MEANINGS.get(main[0].cause, '')} {cpu_warning(result)}"
    return Answer(question, names.capitalize(), words.strip())


def _advice(result: Result) -> Answer:
    question = "Which policy is cheaper?" if result.slo_met else "Which policy meets the SLO?"
    if result.replica_minutes is None:
        return Answer(question, UNKNOWN, "The requested replicas are not known: these events have no journal.")
    others, least = result.other_policies or (), result.cost.packing_replica_minutes if result.cost else None
    costs = [("this run", result.replica_minutes, result.in_sla)]
    costs += [(policy.policy, policy.replica_minutes, policy.in_sla) for policy in others]
    most = max(cost for _, cost, _ in costs) or 1.0
    bars: list[Bar] = [
        (f"{name}, {share(part)}", minutes(cost), 100 * cost / most, "met" if part >= result.percentile else "not-met")
        for name, cost, part in costs
    ]
    if least is not None:
        bars.append(("per-second packing", minutes(least), 100 * least / most, ""))
    if not others:
        words = "Other policies were not simulated: run tailpack report RUN_DIR --others"
        words = NO_SCENARIO if result.world == "unknown" else words
        return Answer(question, UNKNOWN, words, tuple(bars))
    good = [policy for policy in others if policy.in_sla >= result.percentile]
    if result.slo_met:
        good = [policy for policy in good if policy.replica_minutes < result.replica_minutes]
    usable = [policy for policy in good if policy.policy != FORESIGHTED]
    if not usable:
        words = "On these events, no other simulated policy meets the SLO" + (" for less." if result.slo_met else ".")
        words += f" {FORESIGHTED} does, but it knows the peak in advance." if good else ""
        return Answer(question, "None of these", words, tuple(bars))
    best = min(usable, key=lambda policy: (policy.replica_minutes, policy.policy))
    saved = over(best.replica_minutes / result.replica_minutes - 1) if result.replica_minutes else UNKNOWN
    cost = f"{minutes(best.replica_minutes)} replica-minutes ({saved})"
    words = f"On these events it keeps {share(best.in_sla)} in time for {cost}."
    return Answer(question, best.policy, words, tuple(bars), _with_policy(result.provenance.command, best.policy))


def _with_policy(command: str, policy: str) -> str:
    """Return a run's command with another policy and the default folder; "" for any other command."""
    try:
        first, *words = shlex.split(command)
    except ValueError:  # no words, or a quote without its end
        return ""
    if words[:1] not in (["run"], ["demo"], ["simulate"]):
        return ""
    kept, rest = [first], iter(words)
    for word in rest:
        name, has_value, value = word.partition("=")
        if name not in {"--policy", "--out", "--set"}:
            kept.append(word)
            continue
        value = value if has_value else next(rest, "")
        if name == "--set" and not value.startswith(("policy.", "policy=", "autoscaler.policy")):
            kept += [name, value]
    return shlex.join([*kept, "--policy", policy])


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
        advice = answers(result)[2]
        costs = "; ".join(f"{label}: {text}" for label, text, *_ in advice.bars)
        console.print(Text.assemble("\n", ("replica-minutes  ", "bold"), costs))
        words = f"{advice.answer}. {advice.words} {advice.command and f'Run it: {advice.command}'}"
        console.print(Text.assemble((f"{advice.question}  ", "bold"), words.strip()), soft_wrap=True)
