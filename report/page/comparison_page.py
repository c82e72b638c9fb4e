"""Several runs or policies on one page: who keeps more for what it costs, which differences are more than chance."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from report.page.comparison_view import Compared, ComparisonView, Gap, Group
from report.page.drawing.differences import differences
from report.page.drawing.pareto import pareto
from report.page.rendering import both, render, write_page
from report.page.terms import compared_terms
from report.statistics import Interval
from report.wording import duration, minutes, share

COMPARISON_PAGE: Final = "comparison.html"
__all__ = ["COMPARISON_PAGE", "ComparisonView", "comparison_html", "write_comparison"]
INTERVAL: Final = "number interval"
COLUMNS: Final = (
    ("", ""), ("runs", "number"), ("in time", INTERVAL), ("replica-minutes", INTERVAL), ("p99", INTERVAL),
    ("p99.9", INTERVAL), ("front", "name"),
)  # fmt: skip
Words = Callable[[float], str]


def write_comparison(comparison: ComparisonView, path: Path) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    write_page(comparison_html(comparison), path)


def comparison_html(comparison: ComparisonView) -> str:
    """Return the whole page: one file that needs nothing beside it."""
    return render(
        "comparison.html.jinja", view=comparison, terms=compared_terms(), groups=list(map(_group, comparison.groups))
    )


def _group(group: Group) -> dict[str, Any]:
    return {
        "group": group,
        "pareto": both(lambda width: pareto(group, width)) if group.compared else None,
        "alt": _alt(group),
        "columns": COLUMNS,
        "rows": [_row(position, one) for position, one in enumerate(group.compared, start=1)],
        "gaps": [entry for entry in _gaps(group) if entry["rows"]],
        "notes": [(one.label, one.note) for one in group.compared if one.note],
    }  # fmt: skip


def _row(position: int, one: Compared) -> list[str]:
    return [
        f"{position}. {one.label}",
        f"{one.runs:,}",
        _interval(one.in_sla, share),
        _interval(one.replica_minutes, minutes),
        _interval(one.p99_s, duration),
        _interval(one.p999_s, duration),
        "on it" if one.on_front else "",
    ]


def _gaps(group: Group) -> list[dict[str, Any]]:
    """Return a drawing and a table for each measure of which something can be said."""
    measures: list[tuple[str, str, Callable[[Compared], Gap | None], Words]] = [
        ("Share in time", "Right of zero: more events in time.", lambda one: one.in_sla_gap, _points),
        ("Replica-minutes", "Left of zero: cheaper.", lambda one: one.replica_minutes_gap, _signed(minutes)),
        ("p99", "Left of zero: faster.", lambda one: one.p99_gap_s, _signed(duration)),
        ("p99.9", "Left of zero: faster.", lambda one: one.p999_gap_s, _signed(duration)),
    ]
    return [_measure(group, *measure) for measure in measures]


def _measure(
    group: Group, name: str, hint: str, gap_of: Callable[[Compared], Gap | None], word: Words
) -> dict[str, Any]:
    found = [(one.label, gap) for one in group.compared if (gap := gap_of(one)) is not None]
    rows = [
        [
            label,
            word(gap.mean),
            f"{word(gap.low)} to {word(gap.high)}",
            "" if gap.distinguishable else "not distinguishable",
        ]
        for label, gap in found
    ]
    return {
        "name": name,
        "hint": hint,
        "drawn": both(lambda width: differences(found, width, word=word)) if found else None,
        "rows": rows,
        "alt": f"{name}, difference to {group.reference}: "
        + "; ".join(f"{row[0]} {row[1]} ({row[2]})" for row in rows),
    }


def _alt(group: Group) -> str:
    front = [one.label for one in group.compared if one.on_front]
    return f"Share of late events against replica-minutes. Beaten by nobody: {', '.join(front) or 'not known'}"


def _interval(found: Interval | None, word: Words) -> str:
    if found is None:
        return "–"
    if found.low == found.high:
        return word(found.mean)
    return f"{_unbroken(word(found.mean))} {_unbroken(f'({word(found.low)} – {word(found.high)})')}"


def _unbroken(text: str) -> str:
    """Return the text such that no line ends in it."""
    return text.replace("–", "–\u2060").replace(" ", "\u00a0")


def _points(value: float) -> str:
    """Return a difference of shares in percentage points."""
    return f"{value * 100:+.4g} pp" if value else "0 pp"


def _signed(word: Words) -> Words:
    return lambda value: "0" if value == 0 else word(value) if value < 0 else f"+{word(value)}"
