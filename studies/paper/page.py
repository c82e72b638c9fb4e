"""The papers in Markdown: a table for each of theirs, ours beside it, and how many rows agree."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Final

from bench.markdown import sources, table
from bench.results import Origin, load
from studies.paper.readings import BY_CHANCE, COMPUTED, ON_A_CLUSTER, SETTINGS, in_words
from studies.paper.rule import RULE
from studies.paper.statement import PaperFigures
from studies.published import DIFFERS, REPRODUCED, UNKNOWN

HEADER = ("", "theirs", "ours", "reading", "verdict")
LEGEND = ("reading", "set over the scenario", "rows that it reproduces")


def page(rows: Sequence[PaperFigures], origins: Iterable[Origin]) -> str:
    """Return the whole page below its title."""
    parts = [RULE, "", summary(rows), ""]
    for paper, some in groupby(rows, key=lambda row: row.paper):
        own = list(some)
        parts += [f"## {paper}", "", *legend(own)]
        for name, found in groupby(own, key=lambda row: row.table):
            parts += [f"**{name}**", "", table(HEADER, map(_cells, found))]
    return "\n".join(parts) + "\n" + sources(origins)


def summary(rows: Sequence[PaperFigures]) -> str:
    """Say how many rows have which verdict."""
    count = Counter(row.verdict for row in rows)
    return f"{len(rows)} rows: " + ", ".join(f"{count[one]} {one}" for one in (REPRODUCED, DIFFERS, UNKNOWN)) + "."


def legend(rows: Sequence[PaperFigures]) -> list[str]:
    """Say what each reading sets and how many rows it reproduces, the one that judges in bold; nothing where nothing
    was simulated.
    """
    checked = [row for row in rows if row.readings]
    judging = {row.reading.split("; ")[0] for row in checked if len(row.readings) > 1}
    names = list(dict.fromkeys(name for row in checked for name in row.readings))
    if not names:
        return []
    lines = []
    for name in names:
        tried = [row for row in checked if name in row.readings]
        hits = sum(name in row.reproducing for row in tried)
        drawn = "; which partitions move is drawn at random" if name.endswith(BY_CHANCE) else ""
        said = f"**{name}**" if name in judging else name
        lines.append((said, in_words(SETTINGS.get(name, {})) + drawn, f"{hits} of {len(tried)}"))
    return [f"In all but `{COMPUTED}`: {in_words(ON_A_CLUSTER)}.", "", table(LEGEND, lines)]


def _cells(row: PaperFigures) -> tuple[str, ...]:
    verdict = row.verdict if row.verdict == REPRODUCED else f"**{row.verdict}**"
    if len(row.readings) > 1:
        verdict += f", {len(row.reproducing)} of {len(row.readings)} readings"
    return row.what, row.published, row.ours, row.reading, f"{verdict}: {row.why}" if row.why else verdict


def committed() -> str:
    """Return every row that is committed."""
    found = load("paper", PaperFigures)
    return page([row.result for row in found], (row.origin for row in found))


PAPER_TABLES: Final[dict[str, Callable[[], str]]] = {"paper": committed}
