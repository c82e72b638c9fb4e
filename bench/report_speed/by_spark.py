"""The figures as the report gets them, by the very transforms of the report job."""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.report_speed.answer import Answer, Figures, Question
from bench.simulation.folder import JOURNAL
from report.page import page
from report.spark import judge, measures, seconds
from report.spark.files import read_events, read_journal
from report.spark.job import SHORT_EVENTS, Cluster, report_run
from report.spark.session import LOG_FILE, jar_files, open_session, size_shuffles
from report.spark.terms import Terms


def with_causes(question: Question) -> Answer:
    """Return the figures, and late events by cause. The caller ends the session, as in all of these."""
    spark, run = _session(question), question.run
    with ThreadPoolExecutor(1) as beside:  # as `tailpack report` does
        journal = beside.submit(read_journal, spark, str((question.folder / JOURNAL).resolve()))
        events = read_events(spark, str(question.events.resolve()), ours=True)
        found = judge.essentials(run, question.started_us, events, journal)
    causes = {one.cause: one.events for one in found.tail.causes}
    return Answer(figures=_figures(found.counts, found.ranks, found.seconds, found.done), causes=causes)


def without_causes(question: Question) -> Answer:
    """Return the figures alone, by the first half of what `judge.essentials` does."""
    events = read_events(_session(question), str(question.events.resolve()), ours=True)
    terms = Terms(question.started_us, question.target_us, 0)
    with ThreadPoolExecutor(1) as beside:  # as there: one job plans, the other one's tasks have the cores
        by_second = beside.submit(seconds.by_second(events, terms).collect)
        completed = seconds.completed(seconds.cells(events, terms)).collect()
        rows, ranks = [row.asDict() for row in by_second.result()], judge.percentiles(events)
    return Answer(figures=_figures(seconds.shares(completed), ranks, rows, seconds.done(completed)))


def whole(question: Question) -> Answer:
    """Make result.json and the page, in a folder that only shows the run's files: they are not to be written beside."""
    shown = question.scratch / "run"
    shown.mkdir()
    for place in question.folder.iterdir():
        (shown / place.name).symlink_to(place.resolve())
    result = report_run(shown, Cluster(question.master, question.jars))
    page.write(result, shown / page.PAGE_FILE)
    causes = {one.cause: one.events for one in result.tail.causes} if result.tail else {}
    return Answer(figures=None, causes=causes)


def _session(question: Question) -> Any:
    """Return Spark, started and sized as `tailpack report` does for this run."""
    events = question.run.events_scheduled
    log = question.scratch / LOG_FILE
    spark = open_session(question.master, jar_files(question.jars), log, short=events <= SHORT_EVENTS)
    size_shuffles(spark, events)
    return spark


def _figures(
    counts: Mapping[str, int], ranks: Mapping[str, int], rows: Sequence[Mapping[str, Any]], done: Mapping[int, int]
) -> Figures:
    return Figures(
        events=counts["events"],
        in_sla=counts["in_sla"],
        lost=counts["lost"],
        refused=counts["refused"],
        latency_us=tuple(ranks[name] for name in measures.PARTS_PER_MILLION) if ranks else (),
        seconds=tuple(sorted((row["second"], row["arrivals"], row["p50"], row["p99"], row["max"]) for row in rows)),
        done=tuple(sorted(done.items())),
    )
