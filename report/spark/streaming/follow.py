"""Let a stream run until its run is over, or through what is there now; collect what Spark says on the way."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it ships no types
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from report.spark.errors import ReportError
from report.spark.session import LOG_FILE
from report.spark.streaming.query import WindowStream

LOOK_EVERY_S: Final = 1.0
TRACEBACK: Final = "Traceback (most recent call last)"
RAISED: Final = re.compile(r"(?!py4j)[A-Za-z_][\w.]*(Error|Exception): ")
"""Last line of a Python traceback; Py4J's own error only wraps Java's."""

REFUSED: Final = re.compile(r"\[USER_RAISED_EXCEPTION\] (.+?)(?: SQLSTATE|$)", re.MULTILINE)
"""What a query of ours says when it refuses a record."""


@dataclass(slots=True)
class LeftOut:
    """Records that no window counts, or counts as nothing done, and why."""

    late: int = 0
    """Events of which a record came after their window was closed; what was known of them until then is counted."""
    ahead: int = 0
    """Records intended more than a minute in the future."""
    unreadable: int = 0
    """Records that say nothing: their events are counted, as not done."""
    batch: int = -1
    """Newest micro-batch that was looked at."""

    def look(self, query: StreamingQuery) -> None:
        """Add what the batches since the last look left out; Spark remembers the last hundred."""
        for progress in query.recentProgress:
            if progress["batchId"] <= self.batch:
                continue
            self.batch = progress["batchId"]
            self.late += sum(operator["numRowsDroppedByWatermark"] for operator in progress["stateOperators"])
            if metrics := progress["observedMetrics"]:
                self.ahead += metrics["clock"]["ahead"]
                self.unreadable += metrics["records"]["unreadable"]


def follow(stream: WindowStream, until: Callable[[], bool], every_s: float) -> LeftOut:
    """Count a micro-batch each `every_s` until told to stop; the windows still open then are left to `finish`.

    Raises ReportError when the query fails; the folder then holds what was closed, and a new start goes on.
    """
    return _run(stream, every_s=every_s, until=until)


def finish(stream: WindowStream, *, ended: bool, until: Callable[[], bool] = lambda: False) -> LeftOut:
    """Count what the topics hold now, or less when told to stop. ended: nothing more comes, so close every window.

    Raises ReportError as `follow` does.
    """
    if ended:
        stream.end()
    return _run(stream, every_s=None, until=until)


def _run(stream: WindowStream, *, every_s: float | None, until: Callable[[], bool]) -> LeftOut:
    left_out = LeftOut()
    query: StreamingQuery | None = None
    try:
        query = stream.start(every_s=every_s)
        while not until() and not query.awaitTermination(LOOK_EVERY_S):
            left_out.look(query)
        left_out.look(query)
    except (PySparkException, Py4JError) as failed:
        raise ReportError(
            f"the stream ended ({_cause(failed)}); {stream.folder / LOG_FILE} says more; the same command goes on"
        ) from failed
    finally:
        if query is not None:
            query.stop()
    return left_out


def _cause(failed: Exception) -> str:
    """Return the innermost cause that the message names, in one line: ours in Python, else Java's."""
    if refused := REFUSED.search(str(failed)):
        return refused[1]
    lines = [line.strip() for line in str(failed).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by:")]
    ours = [line for line in lines if RAISED.match(line)] if TRACEBACK in str(failed) else []
    said = [*lines[:1], *causes, *ours][-1] if lines else type(failed).__name__
    return (said.partition("terminated with exception: ")[2] or said).partition(" SQLSTATE")[0][:300]
