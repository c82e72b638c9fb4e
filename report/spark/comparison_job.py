"""`python -m report.spark.comparison_job OUT RUN_DIR RUN_DIR …`: runs against each other; writes comparison.json.

A run without a report gets one first, in the same session.
"""

import argparse
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

import msgspec
import numpy as np
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from contracts.journal import ReplicaChanged
from contracts.validation import InvalidSettingsError
from report import compare_runs
from report.compare_runs import Contest, Entrant, contests
from report.comparison import RunComparison, SameEvents
from report.page import page
from report.result import RESULT_FILE, Result
from report.spark import ReportError
from report.spark import group_history as history
from report.spark.job import Cluster, report_run
from report.spark.read import EVENTS, events_in, is_stored, journal_of, load_run
from report.spark.session import LOG_FILE, end_jvm, jar_files, open_session
from report.spark.terms import accounted
from report.statistics import EDGES_PER_DECADE, Cells, cell_length_s

PLACE: Final = ("partition", "offset", "intended_us")
"""What the same event has in common in two runs: where it lay, and when, since the start, it was intended."""


def main() -> int:
    """Return 0 when the comparison was written, 1 when the runs cannot be compared."""
    arguments = _parser().parse_args()
    cluster = Cluster(master=arguments.master, jars=arguments.jars)
    try:
        found = compare(arguments.runs, arguments.out, cluster, command=arguments.command)
        found.save(arguments.out)
    except ReportError as wrong:
        sys.stderr.write(f"{wrong}\n")
        return 1
    except InvalidSettingsError as wrong:
        sys.stderr.writelines(f"{problem}\n" for problem in wrong.problems)
        return 1
    except OSError as refused:
        sys.stderr.write(f"{arguments.out} cannot take the comparison: {refused.strerror}\n")
        return 1
    finally:
        end_jvm()
    sys.stdout.write(found.verdict + "\n")
    return 0


def compare(folders: Sequence[Path], out: Path, cluster: Cluster, *, command: str) -> RunComparison:
    """Compare the runs in `folders`. Raises ReportError for a run that cannot be."""
    entrants = [entrant(folder, cluster) for folder in dict.fromkeys(folder.resolve() for folder in folders)]
    groups = contests(entrants)
    if all(len(group.contestants) < 2 for group in groups):
        raise ReportError(
            "nothing to compare: no two of these runs met the same load under different policies or settings"
        )
    return compare_runs.compared(groups, _counted(groups, out, cluster), command=command)


def entrant(folder: Path, cluster: Cluster) -> Entrant:
    """Return the run in `folder`, reported on if it was not yet. Raises ReportError."""
    info = load_run(folder)
    if not (folder / RESULT_FILE).exists():
        page.write(report_run(folder, cluster), folder / page.PAGE_FILE)
    try:
        result = Result.load(folder)
    except (OSError, msgspec.DecodeError) as broken:
        raise ReportError(f"{folder / RESULT_FILE}: not a result ({broken}); tailpack report makes it anew") from broken
    if result.replica_minutes is None:
        raise ReportError(
            f"{folder}: its report knows no replica-minutes: a run without journal has no cost to compare"
        )
    return Entrant(folder, info, result)


def _counted(groups: Sequence[Contest], out: Path, cluster: Cluster) -> compare_runs.Counted:
    """Read the events of the runs that are compared by their seconds; where there is none, no Spark is started."""
    wanted = {one.folder: one for group in groups for one in compare_runs.to_draw(group)}
    if not wanted:
        return compare_runs.Counted()
    for folder in wanted:
        if not is_stored(folder):
            raise ReportError(f"{folder}: {EVENTS} is missing or not whole; tailpack report makes it from the topics")
    spark = open_session(cluster.master, jar_files(cluster.jars), out / LOG_FILE, short=True)
    pairs = [pair for group in groups for pair in compare_runs.lone_pairs(group)]
    try:
        frames = {folder: events_in(spark, folder).rows for folder in wanted}
        return compare_runs.Counted(
            cells={folder: cells_of(one, frames[folder], spark) for folder, one in wanted.items()},
            same={(one.folder, other.folder): _same(one, other, frames) for one, other in pairs},
        )
    except (PySparkException, Py4JError) as failed:
        said = (str(failed).strip() or type(failed).__name__).splitlines()[0]
        raise ReportError(f"Spark could not read the runs ({said[:300]}); {out / LOG_FILE} says more") from failed


def cells_of(one: Entrant, events: DataFrame, spark: SparkSession) -> Cells:
    """Return the run, cut into cells of time: what was intended after the last cell counts there, refused events not.

    Latencies up to the median need not be told apart.
    """
    result, started_us = one.result, one.result.provenance.started_us
    length_s = cell_length_s(result.duration_s)
    count = max(1, -(-round(result.duration_s) // length_s))
    number = f.floor((f.col("intended_us") - started_us) / (length_s * 1_000_000))
    cell = f.greatest(f.lit(0), f.least(f.lit(count - 1), number)).alias("cell")
    latency_us, events_here = f.col("done_us") - f.col("intended_us"), f.count("*").alias("events")
    in_sla = f.count_if(latency_us <= round(result.latency_target_s * 1e6)).alias("in_sla")
    totals = _columns(events.where(accounted()).groupBy(cell).agg(events_here, in_sla))
    least_us = max(1, round((result.p50_s or 0.0) * 1e6))
    edge = f.ceil(f.log10(f.greatest(latency_us, f.lit(least_us)).cast("double")) * EDGES_PER_DECADE).alias("edge")
    found = _columns(events.where("done_us is not null").groupBy(cell, edge).agg(events_here))
    edges, column = np.unique(found["edge"], return_inverse=True)
    within = np.zeros((count, len(edges)), np.int64)
    within[found["cell"], column] = found["events"]
    sums = np.zeros((2, count), np.int64)
    sums[:, totals["cell"]] = totals["events"], totals["in_sla"]
    paid = history.paid(history.only(journal_of(spark, one.folder), ReplicaChanged))
    limits_us = [started_us + min(k * length_s, result.duration_s) * 1e6 for k in range(count + 1)]
    paid_s = [
        60 * history.replica_minutes(paid, round(begin_us), round(end_us)) for begin_us, end_us in pairwise(limits_us)
    ]
    return Cells(sums[0], sums[1], np.array(paid_s), 10 ** (edges / EDGES_PER_DECADE) / 1e6, within)


def _same(one: Entrant, other: Entrant, frames: dict[Path, DataFrame]) -> SameEvents:
    """Compare two runs event by event. Never done is late."""
    target_us = round(one.result.latency_target_s * 1e6)
    pairs = _placed(one, frames, "here_us").join(_placed(other, frames, "there_us"), list(PLACE))
    late_here, late_there = (f.coalesce(f.col(name) > target_us, f.lit(True)) for name in ("here_us", "there_us"))
    difference = f.col("here_us") - f.col("there_us")
    counts = pairs.agg(
        f.count("*").alias("paired"),
        f.count_if(late_here & late_there).alias("late_in_both"),
        f.count_if(late_here & ~late_there).alias("late_only_here"),
        f.count_if(~late_here & late_there).alias("late_only_in_reference"),
        f.count(difference).alias("both_done"),
        f.coalesce(f.sum(difference), f.lit(0)).alias("difference_us"),
    )
    told = counts.collect()[0].asDict()
    both, difference_us = told.pop("both_done"), told.pop("difference_us")
    return SameEvents(
        **told,
        of=max(one.result.events, other.result.events),
        mean_difference_s=difference_us / both / 1e6 if both else None,
    )


def _placed(one: Entrant, frames: dict[Path, DataFrame], name: str) -> DataFrame:
    """Return the place of each event, and its latency under `name`."""
    events = frames[one.folder].where("partition is not null and offset is not null")
    return events.select(
        f.col("partition").cast("int").alias("partition"),
        f.col("offset").cast("long").alias("offset"),
        (f.col("intended_us") - one.result.provenance.started_us).alias("intended_us"),
        (f.col("done_us") - f.col("intended_us")).alias(name),
    )


def _columns(counted: DataFrame) -> dict[str, np.ndarray]:
    """Return a small frame of integers as arrays."""
    table = counted.toArrow()
    return {name: table[name].to_numpy() for name in table.column_names}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m report.spark.comparison_job", description=__doc__)
    add = parser.add_argument
    add("out", type=Path, help="folder that takes comparison.json")
    add("runs", type=Path, nargs="+", metavar="RUN_DIR", help="folders of runs; the first is the reference")
    add("--master", default="local[2]", help="Spark master (default: %(default)s)")
    add("--jars", type=Path, action="append", default=[], help="jar, or folder of jars, of Spark's Kafka connector")
    add("--command", default="", help="what the comparison says it was made by")
    return parser


if __name__ == "__main__":
    sys.exit(main())
