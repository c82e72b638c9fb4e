"""The result as one HTML file that needs nothing beside it: no network, light and dark, phone to print.

Without script everything is there; with it, what lies on a time axis can be zoomed and read value by value.
"""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from report.page import rebalances as rounds
from report.page import tables
from report.page.drawing.distribution import distribution
from report.page.drawing.heat import heat_map, key
from report.page.drawing.rebalances import rebalances
from report.page.drawing.timeline import timeline
from report.page.happenings import Tenures, decisions_shown, happenings, spells_shown, tenures
from report.page.page_data import page_data
from report.page.rendering import both, part, render, write_page
from report.page.terminal import figures
from report.page.terms import terms
from report.page.traces import PANELS, series
from report.result import Result

PAGE_FILE: Final = "report.html"
SECTIONS: Final = (
    ("latency", "Latency"), ("timeline", "Over time"), ("late", "Why late"), ("heat", "Partitions"),
    ("stages", "Stages"), ("served", "Who served"), ("decisions", "Decisions"), ("rebalances", "Rebalances"),
    ("cost", "Cost"), ("integrity", "Integrity"), ("words", "Words"), ("again", "Make it again"),
)  # fmt: skip
SCRIPTS: Final = ("page_draw.js", "page_read.js", "page.js")
"""One block of code, in the order in which each builds upon those before it."""


def write(result: Result, path: Path) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    write_page(html(result), path)


def html(result: Result) -> str:
    """Return the whole page."""
    held = tenures(result.heat)
    happened = happenings(result, held)
    good = result.valid and result.kept and result.whole
    suspect = result.integrity.suspect if result.integrity else ()
    pictures = _pictures(result, held)
    breakdowns = tables.breakdowns(result)
    time_columns, time_rows, time_note = tables.over_time(result)
    absent = {
        name
        for name, there in (
            ("latency", pictures["distribution"]),
            ("heat", pictures["heat"]),
            ("served", breakdowns),
            ("rebalances", result.rebalances and result.rebalances.lengths),
        )
        if not there
    }
    return render(
        "page.html.jinja",
        result=result,
        mood="good" if good else "bad",
        badge=_badge(result),
        problems=result.problems,
        suspect=suspect,
        figures=figures(result),
        sections=[entry for entry in SECTIONS if entry[0] not in absent],
        timeline=both(lambda width: timeline(result, happened, width)),
        has_bound="bound" in series(result),
        unknown=_unknown(result),
        time_columns=time_columns,
        time_rows=time_rows,
        time_note=time_note,
        owners=tables.owners(result, held),
        stage_columns=tables.STAGE_COLUMNS,
        stages=tables.stages(result),
        breakdown_columns=tables.BREAKDOWN_COLUMNS,
        breakdowns=breakdowns,
        decisions=decisions_shown(result),
        lead=tables.late_lead(result),
        terms=terms(),
        cost_bars=tables.cost_bars(result),
        cost_words=tables.cost_words(result),
        cost_rows=tables.cost(result),
        integrity_rows=tables.integrity(result.integrity),
        topics=[[one.topic, f"{one.records:,}", f"{one.duplicates:,}", f"{one.differing:,}"] for one in result.topics],
        provenance=_provenance(result),
        data=page_data(result, happened, held),
        scripts=[part(name) for name in SCRIPTS],
        **pictures,
        **_tail(result),
        **_rebalances(result),
    )


def _pictures(result: Result, held: Tenures) -> dict[str, Any]:
    """Return what can only be drawn where something is known."""
    heated = result.heat is not None and any(result.heat.max_s)
    return {
        "distribution": both(lambda width: distribution(result, width)) if result.distribution.share else None,
        "heat": both(lambda width: heat_map(result, held, width)) if heated else None,
        "heat_key": key(result.latency_target_s),
    }


def _rebalances(result: Result) -> dict[str, Any]:
    found = result.rebalances if result.rebalances and result.rebalances.lengths else None
    measured = found is not None and any(one.pause_s is not None for one in found.rounds)
    return {
        "rebalances": found,
        "rebalance_columns": rounds.COLUMNS,
        "rebalance_rows": rounds.rows(found) if found else [],
        "rebalances_drawn": both(lambda width: rebalances(found, result.latency_target_s, width))
        if found and measured
        else None,
    }


def _tail(result: Result) -> dict[str, Any]:
    tail, listed = result.tail, spells_shown(result)
    return {
        "tail": tail,
        "late_words": tables.late_words(result),
        "spells": listed,
        "spells_left_out": tail.episodes_left_out + len(tail.episodes) - len(listed) if tail else 0,
        "events_left_out": tail.late - sum(spell.events for spell in listed) if tail else 0,
    }


def _badge(result: Result) -> str:
    if not result.valid:
        return "not valid"
    if not result.whole:
        return "integrity broken"
    return "kept" if result.kept else "missed"


def _unknown(result: Result) -> str:
    """Return the panels of which nothing is known, in words."""
    known = series(result)
    missing = [panel.title.lower() for panel in PANELS if not any(trace.name in known for trace in panel.traces)]
    return "; ".join(missing)


def _provenance(result: Result) -> list[tuple[str, str]]:
    made = result.provenance
    started = datetime.fromtimestamp(made.started_us / 1e6, tz=UTC)
    rows = [
        ("run", result.run),
        ("started", f"{started:%Y-%m-%d %H:%M:%S} UTC, {result.duration_s:g} s of load" if made.started_us else ""),
        ("simulated", "" if made.started_us else f"{result.duration_s:g} s of load"),
        ("scenario, policy", f"{result.scenario}, {result.policy}"),
        ("topology", f"{result.topology}, {result.payment_partitions} payment partitions"),
        ("seed", str(result.seed)),
        ("commit", made.commit),
        ("machine", made.machine),
        (
            "peak memory",
            "" if made.peak_memory_mib is None else f"{made.peak_memory_mib:,.0f} MiB (PSS of all processes)",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
    ]
    return [(label, text) for label, text in rows if text]
