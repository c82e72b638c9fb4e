"""Every table of the Markdown files, by its name; made from the committed figures, never typed."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from bench import grouping_live, markdown
from bench.experiments import chain, classes
from bench.experiments.drawn import drawn_table
from bench.experiments.fronts_page import FRONT_TABLES
from bench.experiments.tables import EXPERIMENT_TABLES
from bench.handover.show import HANDOVER_TABLES
from bench.live_chain.pairs import live_chain_table
from bench.results import ClusterRow, LiveRow
from report.wording import share
from studies.grouping.show import GROUPING_TABLES
from studies.packing.claims import PACKING_TABLES
from studies.paper.page import PAPER_TABLES
from studies.published import CLOSER_2024


def live() -> str:
    """Return what live runs came to, the paper's figures beside them."""
    return markdown.live({"paper: in SLA, r-m, ups/downs": _printed})


def cluster() -> str:
    """Return the same of runs whose replicas were pods, and what starts and handovers took there."""
    return markdown.live({**markdown.PODS, "paper: in SLA, r-m, ups/downs": _printed}, "cluster", ClusterRow)


def _printed(runs: Sequence[LiveRow]) -> str:
    paper = CLOSER_2024.get((runs[0].scenario, runs[0].policy))
    if paper is None:
        return "–"
    actions = "" if paper.scale_ups is None else f", {paper.scale_ups}/{paper.scale_downs}"
    return f"{share(paper.in_sla)}, {paper.replica_minutes}{actions}"


EVERY_TABLE: Final[dict[str, Callable[[], str]]] = {
    "live": live,
    "cluster": cluster,
    **markdown.MEASURED_TABLES,
    **EXPERIMENT_TABLES,
    **FRONT_TABLES,
    "fronts-drawn": drawn_table,
    "chain": partial(markdown.committed, chain.NAME, chain.ChainRow, chain.COLUMNS),
    "chain-live": live_chain_table,
    "classes": partial(markdown.committed, classes.NAME, classes.ClassesRow, classes.COLUMNS),
    **HANDOVER_TABLES,
    **GROUPING_TABLES,
    "grouping-live": partial(
        markdown.committed, grouping_live.NAME, grouping_live.GroupingLiveRow, grouping_live.COLUMNS
    ),
    **PACKING_TABLES,
    **PAPER_TABLES,
}
