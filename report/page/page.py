"""The result as one HTML file that needs nothing beside it: no network, light and dark, phone to print.

Without script the tables are there; with it, what lies on a time axis can be zoomed and read value by value.
"""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contracts.journal import PlanAlternative
from report import replace_file
from report.causes import MEANINGS, cause_title
from report.page import chart_data as charts
from report.page.answers import answers, key_figures
from report.page.sheets import laid_out, over_time, sheets
from report.result import LateEpisode, Result
from report.wording import UNKNOWN, count, duration, moment, several, share

PAGE_FILE: Final = "report.html"
HERE: Final = Path(__file__).parent
UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|ms|s|MiB|pp)(?!\w))")
NUMBER: Final = re.compile(r"[−+]?\d|–$")

OF_A_RUN: Final[dict[str, str]] = {
    "promise, target (W)": "so many of the events, in percent, are to be done within so much time, the latency target",
    "latency": "from when the load was meant to send an event (intended) until Payment had done it; a generator or a "
    "group that stands still hides nothing",
    "p99.9": "the latency that 99.9 % of the events do not exceed",
    "replica-minutes": "replicas paid for, added up over time: two replicas for 30 seconds are one replica-minute",
    "packing": "the fewest replicas that hold the events of each second, had all been known before, and were starts, "
    "moves and stops for nothing",
    "requested, ready": "replicas that are paid for, from when they were asked for; and those that can serve",
    "lag": "events that lie in Payment's topic and are not committed yet",
    "plan (epoch)": "which replicas there are and who of them owns which partition; plans are numbered",
    "handover": "a partition gets another owner; only that partition is not served meanwhile",
    "μ, λ": "events per second that one replica serves when it is never idle, and that arrive",
    "cost of an alternative": "predicted replica-seconds, late events at their price included",
    "Rscore": "load that a plan moves to other owners, in replicas that are busy with it; the mean over all plans",
    "effect": "what an order is to cause once: a payment, a parcel, a message",
    "refused": "an event that cannot be handled; a topic of its own (dead letters) takes it instead",
}
SECTIONS: Final = {
    "timeline": "Over time", "late": "Latency and causes", "heat": "Partitions", "episodes": "Episodes",
    "decisions": "Decisions", "more": "In detail", "integrity": "Integrity", "again": "Make it again",
}  # fmt: skip
DETAILS: Final = {
    "stages": "A live replica receives more than one event at a time and serves one after the other, so waiting behind "
    "those counts as received → done; a simulated one receives an event as it begins to serve it. Percentiles are "
    "exact: the nearest rank over every event.",
    "replicas": "", "partitions": "", "epochs": "",
    "rebalances": "Rounds of the group. The pause is the longest that an event waited only because its partition had "
    "no owner; ready: from the plan until the last partition was served again. By plan: a plan moved partitions; "
    "death: it gave away what a dead replica had; membership: the group itself.",
    "cost": "", "integrity": "",
    "topics": "A duplicate is a record whose event was on the topic before; it may be, as long as both say the same.",
}  # fmt: skip
"""Tables that stand folded at the end → what is to be said of them."""
ROWS: Final = 60
"""Of the table over time."""
WEIGHED: Final = 8
"""Alternatives of a decision that are shown."""


def write(result: Result, path: Path) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    replace_file(path, html(result))


def html(result: Result) -> str:
    """Return the whole page."""
    known, listed = charts.panels(result), charts.episodes_shown(result)
    there = {"heat": result.heat and any(result.heat.max_s), "episodes": listed}
    absent = {name for name, what in there.items() if not what}
    tail, step_s = result.tail, charts.bucket(len(result.series.arrivals), ROWS)
    environment = Environment(
        loader=PackageLoader("report.page", ""), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(
        cause=cause_title, count=count, duration=lambda value: tied(duration(value)), kind=kind, latency=latency,
        moment=moment, place=place, share=lambda value: tied(share(value)), span=span,
        tied=tied, weighed_as=weighed_as,
    )  # fmt: skip
    return environment.get_template("page.html.jinja").render(
        part=lambda name: (HERE / name).read_text(encoding="utf-8"),
        result=result,
        mood="good" if result.valid and result.kept and result.whole else "bad",
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
        over_time=laid_out(over_time(result, step_s)),
        heat="heat" not in absent,
        heat_key=charts.heat_key(result.latency_target_s),
        episodes=listed,
        left_out=tail.episodes_left_out + len(tail.episodes) - len(listed) if tail else 0,
        decisions=charts.decisions_shown(result),
        weighed=WEIGHED,
        tables=_details(result),
        terms=OF_A_RUN.items(),
        provenance=_provenance(result),
        data=charts.chart_data(result),
    )


def _details(result: Result) -> list[tuple[str, str, list[str], list[tuple[str, ...]]]]:
    left_out = set() if result.has_journal else {"cost"}
    found = {one.name: one for one in sheets(result) if one.rows and one.name not in left_out}
    return [(found[name].title, note, *laid_out(found[name])) for name, note in DETAILS.items() if name in found]


def _badge(result: Result) -> str:
    kept = "kept" if result.kept else "missed"
    return "not valid" if not result.valid else kept if result.whole else "integrity broken"


def _provenance(result: Result) -> list[tuple[str, str]]:
    made, load, known = result.provenance, f"{result.duration_s:g} s of load", result.world != "unknown"
    started, memory_mib = datetime.fromtimestamp(made.started_us / 1e6, tz=UTC), made.peak_memory_mib
    rows = {
        "run": result.run,
        "started": f"{started:%Y-%m-%d %H:%M:%S} UTC, {load}" if made.started_us else f"simulated, {load}",
        "scenario, policy": f"{result.scenario}, {result.policy}, seed {result.seed}" if known else result.scenario,
        "topology": f"{result.topology}, {result.payment_partitions} payment partitions" if known else "",
        "commit": made.commit,
        "machine": made.machine,
        "peak memory": "" if memory_mib is None else f"{memory_mib:,.0f} MiB (PSS of all processes)",
        "cores": "" if made.cores_full_s is None else f"all busy for {made.cores_full_s:.0f} s of the run",
        "versions": ", ".join(f"{name} {version}" for name, version in made.versions.items()),
    }
    return [(label, text) for label, text in rows.items() if text]


def tied(text: str) -> str:
    """Return the text with each number tied to its unit, so that no line ends between them."""
    return UNIT.sub("\u00a0", text)


def kind(text: str) -> str:
    """Return the class of a cell: numbers stand at the right."""
    return "number" if NUMBER.match(text) and all(len(line) < 45 for line in text.splitlines()) else "words"


def latency(value_s: float | None) -> str:
    """Return the latency of a late event, which may never have been done."""
    return "never done" if value_s is None else duration(value_s)


def span(episode: LateEpisode) -> str:
    """Return when an episode was: one moment, or from – until."""
    first, last = moment(episode.from_s), moment(episode.until_s)
    return first if first == last else f"{first} – {last}"


def place(episode: LateEpisode) -> str:
    """Return where an episode was, as far as that is known."""
    parts = (("partition {}", episode.partition), ("{}", episode.replica), ("plan {}", episode.epoch))
    return ", ".join(words.format(value) for words, value in parts if value is not None) or UNKNOWN


def weighed_as(one: PlanAlternative) -> str:
    """Return what the policy expected of a plan."""
    moved = f", moving {several(one.moved, 'partition')}" if one.moved else ""
    return f"{several(one.replicas, 'replica')}{moved}: {share(one.in_sla)} in time, cost {one.cost_s:,.1f}"
