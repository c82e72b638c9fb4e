"""Write a result as one HTML page that loads nothing from the network and fits phones, screens and paper.

The page shows all figures in tables. With JavaScript it also has charts that can be zoomed.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contracts.journal import PlanAlternative
from report import replace_file
from report.causes import MEANINGS, cause_title
from report.page import chart_data as charts
from report.page.answers import answers, key_figures
from report.page.sheets import layout, over_time, sheets
from report.result import PlanDecision, Result
from report.wording import UNKNOWN, count, duration, moment, plural, share

PAGE_FILE: Final = "report.html"
PAGE_FOLDER: Final = Path(__file__).parent
UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|ms|s|MiB|pp)(?!\w))")
NUMBER: Final = re.compile(r"[−+]?\d|–$")

GLOSSARY: Final[dict[str, str]] = {
    "SLO, latency target (W)": "the share of events that must be done within the latency target",
    "latency": "time from the scheduled send time (intended) until Payment is done, so generator delays count",
    "p99.9": "the latency that 99.9 % of the events do not exceed",
    "replica-minutes": "requested replicas, summed over time: two replicas for 30 seconds are one replica-minute",
    "packing": "the fewest replicas that can serve the events of each second, if all events were known in advance and "
    "starts, moves and stops were free",
    "requested replicas": "replicas that are paid for, from their request until they end",
    "ready replicas": "replicas that can serve events",
    "lag": "events in Payment's topic that are not committed yet",
    "plan (epoch)": "the replicas and the owner of each partition; the epoch numbers the plans",
    "handover": "a partition moves to another owner; meanwhile all other partitions are served",
    "μ, λ": "service rate and arrival rate, in events per second; a replica serves μ events per second if never idle",
    "cost of an alternative": "predicted replica-seconds plus the price of the predicted late events",
    "Rscore": "mean load that a plan moves to other owners; 1 is the capacity of one replica",
    "effect": "a result that an order must have exactly once: a payment, a shipment, a notification",
    "refused": "an event that cannot be processed; it is written to the dead-letter topic",
}
SECTIONS: Final = {
    "timeline": "Over time", "late": "Latency and causes", "heat": "Partitions", "episodes": "Episodes",
    "decisions": "Decisions", "more": "Details", "integrity": "Integrity", "again": "Reproduce",
}  # fmt: skip
DETAILS: Final = {
    "stages": "A live replica receives several events at a time and serves them one by one, so the wait for earlier "
    "events is part of received → done. A simulated one receives an event when it starts to serve it. Percentiles are "
    "exact: nearest rank over all events.",
    "replicas": "", "partitions": "", "epochs": "",
    "rebalances": "Pause: the longest time that an event waited only because its partition had no owner. "
    "Plan to ready: time from the plan until the last partition was served again. Kind: plan (a plan moved "
    "partitions), death (a plan replaced a dead replica) or membership (the group moved partitions without a plan).",
    "cost": "", "integrity": "",
    "topics": "A duplicate is a further record of an event that the topic already has. Equal duplicates do no harm.",
}  # fmt: skip
"""Table in the details of the page → the note above it."""
MAX_LISTED: Final = 6
"""Maximum number of partitions, or of replicas, that a row names."""
MAX_TIME_ROWS: Final = 60
"""Maximum number of rows of the table over time."""
EFFECT_S: Final = 10
"""Time after a plan at which its effect is stated, in seconds."""
MAX_ALTERNATIVES: Final = 8
"""Maximum number of alternatives on the page for each decision."""


def write(result: Result, path: Path) -> None:
    """Write the page to `path` atomically."""
    replace_file(path, html(result))


def html(result: Result) -> str:
    """Return the page as HTML."""
    known, listed = charts.panels(result), charts.listed_episodes(result)
    optional = {"heat": result.heat and any(result.heat.max_s), "episodes": listed}
    absent = {name for name, content in optional.items() if not content}
    tail, step_s = result.tail, charts.bucket(len(result.series.arrivals), MAX_TIME_ROWS)
    environment = Environment(
        loader=PackageLoader("report.page", ""), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        cause=cause_title, count=count, duration=lambda value: join_units(duration(value)), kind=kind, latency=latency,
        moment=moment, place=place, share=lambda value: join_units(share(value)), span=span,
        join_units=join_units, alternative=describe_alternative, effect=lambda plan: effect(result, plan),
    )  # fmt: skip
    return environment.get_template("page.html.jinja").render(
        part=lambda name: (PAGE_FOLDER / name).read_text(encoding="utf-8"),
        result=result,
        mood="good" if result.valid and result.slo_met and result.effects_complete else "bad",
        badge=_badge(result),
        suspect=result.integrity.suspect if result.integrity else (),
        questions=answers(result),
        figures=key_figures(result),
        sections=[(name, words) for name, words in SECTIONS.items() if name not in absent],
        panels=[(panel, list(lines)) for panel, lines in known.items() if lines],
        late=[(cause, cause_title(cause)) for cause in charts.late_by_cause(result, 1)],
        meanings=MEANINGS,
        happened=bool(result.decisions or result.failures),
        unknown=", ".join(panel.lower() for panel, lines in known.items() if not lines),
        step=step_s,
        over_time=layout(over_time(result, step_s)),
        heat="heat" not in absent,
        owners="heat" not in absent and result.heat and result.heat.owners,
        heat_key=charts.heat_key(result.latency_target_s),
        episodes=listed,
        left_out=tail.episodes_left_out + len(tail.episodes) - sum(group.episodes for group in listed) if tail else 0,
        decisions=charts.listed_decisions(result),
        max_alternatives=MAX_ALTERNATIVES,
        tables=_details(result),
        terms=GLOSSARY.items(),
        provenance=_provenance(result),
        data=charts.chart_data(result),
    )


def _details(result: Result) -> list[tuple[str, str, list[str], list[tuple[str, ...]]]]:
    left_out = set() if result.has_journal else {"cost"}
    found = {sheet.name: sheet for sheet in sheets(result) if sheet.rows and sheet.name not in left_out}
    return [(found[name].title, note, *layout(found[name])) for name, note in DETAILS.items() if name in found]


def _badge(result: Result) -> str:
    if not result.valid or not result.effects_complete:
        return "integrity broken" if result.valid else "not valid"
    return "met" if result.slo_met else "not met"


def _provenance(result: Result) -> list[tuple[str, str]]:
    origin, load, known = result.provenance, f"{result.duration_s:g} s of load", result.world != "unknown"
    started, memory_mib = datetime.fromtimestamp(origin.started_us / 1e6, tz=UTC), origin.peak_memory_mib
    rows = {
        "run": result.run,
        "started": f"{started:%Y-%m-%d %H:%M:%S} UTC, {load}" if origin.started_us else f"simulated, {load}",
        "scenario, policy": f"{result.scenario}, {result.policy}, seed {result.seed}" if known else result.scenario,
        "topology": f"{result.topology}, {result.payment_partitions} payment partitions" if known else "",
        "commit": origin.commit,
        "machine": origin.machine,
        "peak memory": "" if memory_mib is None else f"{memory_mib:,.0f} MiB (PSS of all processes)",
        "cores": "" if origin.cores_full_s is None else f"all busy for {origin.cores_full_s:.0f} s of the run",
        "interventions": ", ".join(origin.interventions),
        "versions": ", ".join(f"{name} {version}" for name, version in origin.versions.items()),
    }
    return [(label, text) for label, text in rows.items() if text]


def join_units(text: str) -> str:
    """Return the text with no-break spaces between numbers and units."""
    return UNIT.sub("\u00a0", text)


def kind(text: str) -> str:
    """Return the CSS class of a cell: "number" (right-aligned) or "words"."""
    return "number" if NUMBER.match(text) and all(len(line) < 45 for line in text.splitlines()) else "words"


def latency(value_s: float | None) -> str:
    """Return the latency of a late event as text."""
    return "never completed" if value_s is None else duration(value_s)


def span(group: charts.LateGroup) -> str:
    """Return the time of late events as text: one moment, or a span."""
    first, last = moment(group.from_s), moment(group.until_s)
    return first if first == last else f"{first} – {last}"


def place(group: charts.LateGroup) -> str:
    """Return partitions, replicas and plan of late events as text, as far as they are known."""
    numbers, plan = group.partitions, [] if group.worst.epoch is None else [f"plan {group.worst.epoch}"]
    partitions = [f"partition{'s' * (len(numbers) > 1)} {_some(numbers)}"] if numbers else []
    return ", ".join([*partitions, *([_some(group.replicas)] if group.replicas else []), *plan]) or UNKNOWN


def _some(names: Sequence[object]) -> str:
    return ", ".join([*map(str, names[:MAX_LISTED]), *["…"] * (len(names) > MAX_LISTED)])


def effect(result: Result, plan: PlanDecision) -> str:
    """Return lag and ready replicas EFFECT_S after a plan as text; empty if the run had ended."""
    second = max(0, int(plan.at_s + EFFECT_S))
    lag, ready = (values[second : second + 1] for values in (result.series.lag, result.series.ready_replicas))
    return f"{count(lag[0])} waiting, {count(ready[0])} ready" if lag and ready else ""


def describe_alternative(plan: PlanAlternative) -> str:
    """Return the prediction of the policy for a plan as text."""
    moved = f", moving {plural(plan.moved, 'partition')}" if plan.moved else ""
    return f"{plural(plan.replicas, 'replica')}{moved}: {share(plan.in_sla)} in time, cost {plan.cost_s:,.1f}"
