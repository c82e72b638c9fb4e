"""Worker processes, one experiment at a time each. None of them outlives the one that started them."""

import os
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

from bench.experiments.experiment import Experiment
from contracts.validation import InvalidSettingsError

ResultT = TypeVar("ResultT")
Work = Callable[[Experiment], ResultT]
"""How an experiment is run; a function of a module, for it is named to another process."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An experiment without a result, and why in one line."""

    why: str


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    process: BaseProcess
    connection: "Connection[Experiment | None, Any]"


def usable_cores() -> int:
    """Return on how many cores this process may run."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def outcomes(
    asked: Sequence[Experiment], work: Work[ResultT], *, processes: int
) -> Generator[tuple[Experiment, ResultT | Failure], None, None]:
    """Yield each experiment with its outcome, as they are finished. Closing the iterator ends every process."""
    with _started(min(processes, len(asked)), work) as workers:
        waiting = list(reversed(asked))
        doing: dict[Any, tuple[_Worker, Experiment]] = {}
        for worker in workers:
            doing[worker.connection] = _give(worker, waiting.pop())
        while doing:
            for ready in wait(list(doing)):
                worker, one = doing.pop(ready)
                try:
                    outcome = worker.connection.recv()
                except (EOFError, OSError):
                    yield one, Failure(_died(worker.process))
                    continue
                if waiting:
                    doing[worker.connection] = _give(worker, waiting.pop())
                yield one, outcome
        for one in reversed(waiting):
            yield one, Failure("not begun: every process had died")


def _give(worker: _Worker, one: Experiment) -> tuple[_Worker, Experiment]:
    with suppress(OSError):  # it is dead: receiving from it will say so
        worker.connection.send(one)
    return worker, one


def _died(process: BaseProcess) -> str:
    process.join(timeout=5)
    return f"the process that computed it died (exit status {process.exitcode}); memory may have been short"


@contextmanager
def _started(count: int, work: Work[Any]) -> Iterator[list[_Worker]]:
    """Start processes; at the end of the block, however it ends, they are gone."""
    context = get_context("spawn")  # a fork would copy threads and locks of whatever the caller had running
    resource_tracker.ensure_running()  # it changes the signal mask; so before we do
    workers: list[_Worker] = []
    try:
        # Ctrl-C reaches every process of the terminal. The mask is inherited: it is ours alone to react.
        masked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            for number in range(count):
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve, args=(theirs, work), name=f"worker-{number}", daemon=True)
                process.start()
                theirs.close()  # its own is then the only one, and a dead process an end of file
                workers.append(_Worker(process, ours))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, masked)
        yield workers
    finally:
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            worker.process.join()
            worker.connection.close()


def _serve(connection: "Connection[ResultT | Failure, Experiment]", work: Work[ResultT]) -> None:
    """Run experiments until nobody sends any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for handled in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(handled, signal.SIG_DFL)
    while True:
        try:
            one = connection.recv()
        except (EOFError, OSError):
            return
        try:
            outcome: ResultT | Failure = work(one)
        except InvalidSettingsError as wrong:
            outcome = Failure("; ".join(wrong.problems))
        except Exception as wrong:  # one experiment's fault is not the others'
            outcome = Failure(f"{type(wrong).__name__}: {wrong}")
        try:
            connection.send(outcome)
        except OSError:
            return
