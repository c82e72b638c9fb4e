"""Independent jobs on every core."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any, TypeVar

from bench.comparison.workers import Failure, outcomes

JobT = TypeVar("JobT")
DoneT = TypeVar("DoneT")


def each(function: Callable[[JobT], DoneT], jobs: Sequence[JobT], processes: int) -> Iterator[DoneT]:
    """Yield what the jobs come to, in the order in which they are done; one process means this one.

    Whoever stops early, by an error or Ctrl-C, leaves no process behind. Raises RuntimeError for a job that failed.
    """
    if processes == 1:
        yield from map(function, jobs)
        return
    todo: Any = jobs  # the workers take any job that can be pickled; their types name the jobs of simulations
    work: Any = function
    with closing(outcomes(todo, work, processes=processes)) as finished:
        for job, outcome in finished:
            if isinstance(outcome, Failure):
                raise RuntimeError(f"{job}: {outcome.why}")
            done: Any = outcome
            yield done
