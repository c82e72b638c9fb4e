"""Compare statements of a paper with our results. Each statement has one of three verdicts."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.matrix import FAILED, Job, Row, Work, run
from bench.matrix_table import Missing, table

REPRODUCED: Final = "reproduced"
DIFFERS: Final = "differs"
UNKNOWN: Final = "cannot be checked"
FACT: Final = 0.005
"""Relative tolerance of a figure that needs no run: 0.5 %."""
RULE: Final = (
    "A statement is *reproduced* if every printed figure is within its tolerance of ours under the interpretation of "
    "its paper, *differs* otherwise, and *cannot be checked* if no run here can prove or disprove it. The "
    "interpretation of a paper is the one under which most of its statements hold."
)


class Statement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of a paper, our result, and the verdict."""

    paper: str
    table: str
    what: str
    published: str
    ours: str = "–"
    reading: str = ""
    """The interpretation of the paper, and settings that apply to this row only."""
    verdict: str = UNKNOWN
    why: str = ""


class StudyResult(msgspec.Struct, frozen=True, kw_only=True):
    """Every statement with its verdict, and the failed runs."""

    rows: tuple[Statement, ...]
    missing: tuple[Missing, ...] = ()


def judge(
    jobs: Iterable[Job],
    work: Work,
    statements: Callable[[dict[Job, Row]], Iterable[Statement]],
    folder: Path,
    *,
    partly: bool = False,
    **how: Any,
) -> StudyResult:
    """Run the jobs and return the statements about their rows. partly: whether `statements` accepts failed rows."""
    rows = run(jobs, folder, work=work, **how)
    missing = tuple(Missing(run=str(job), why=row[FAILED]) for job, row in rows.items() if FAILED in row)
    return StudyResult(rows=tuple(statements(rows)) if partly or not missing else (), missing=missing)


def verdict(holds: bool) -> str:
    """Return the verdict of a checked statement."""
    return REPRODUCED if holds else DIFFERS


def summary(rows: Sequence[Statement]) -> str:
    """Return the number of rows by verdict, as text."""
    count = Counter(row.verdict for row in rows)
    return f"{len(rows)} statements: " + ", ".join(f"{count[name]} {name}" for name in (REPRODUCED, DIFFERS, UNKNOWN))


def page(rows: Sequence[Statement]) -> str:
    """Return a Markdown page with a table for each of the papers' tables."""
    parts = ["# The papers, reproduced", RULE, summary(rows) + "."]
    for paper, some in groupby(rows, key=lambda row: row.paper):
        own = list(some)
        parts += [f"## {paper}", summary(own) + "."]
        for name, found in groupby(own, key=lambda row: row.table):
            cells = [
                (row.what, row.published, row.ours, row.reading, f"{row.verdict}{f': {row.why}' if row.why else ''}")
                for row in found
            ]
            parts.append(f"**{name}**\n\n" + table(("", "published", "ours", "interpretation", "verdict"), cells))
    return "\n\n".join(parts)
