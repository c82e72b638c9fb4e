"""Progress of commands that take long, their last lines, and the next step."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from bench.matrix import Announce

LINE_INTERVAL_S: Final = 30.0
"""A log, where no bar moves, gets a line so often."""
MAX_FAILURES_SHOWN: Final = 5
"""Failed runs that are named; they mostly fail for the same reason."""


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show progress on standard error; yield the function that reports it: `completed=…, total=…, said=…`, `advance=…`.

    A bar on a terminal, a line now and then in a log.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total, said="")
        started_s = line_s = time.monotonic()

        def tell(**told: Any) -> None:
            nonlocal line_s
            shown.update(task, **told)
            if not sys.stderr.isatty() and (now_s := time.monotonic()) - line_s > LINE_INTERVAL_S:
                line_s, (at,) = now_s, shown.tasks
                done = f"{at.completed:,.0f}" + ("" if at.total is None else f" of {at.total:,.0f}")
                left = "" if at.time_remaining is None else f", about {at.time_remaining:.0f} s left"
                typer.echo(f"{what}: {done} after {now_s - started_s:.0f} s{left}", err=True)

        yield tell


@contextmanager
def matrix_progress(what: str, folder: Path) -> "Iterator[Announce]":
    """Yield what a matrix calls after each run, and show on standard error how far it is.

    When interrupted, it prints where finished runs are kept.
    """
    known = 0
    try:
        with progress(what) as tell:

            def announce(now: int, total: int, said: str) -> None:
                nonlocal known
                known = now
                tell(completed=now, total=total, said=said)

            yield announce
    except KeyboardInterrupt:
        Console(stderr=True).print(f"{known} finished runs are kept in {folder}; the same command goes on")
        raise


def show(markdown: str) -> None:
    """Print a page: rendered on a terminal, as it is elsewhere."""
    console = Console()
    if console.is_terminal:
        from rich.markdown import Markdown  # noqa: PLC0415  only for a terminal

        console.print(Markdown(markdown))
    else:
        console.out(markdown, highlight=False)


def next_step(*commands: str, as_json: bool = False) -> None:
    """Print on standard error what to do next; not with --json, and not without a terminal."""
    if sys.stderr.isatty() and not as_json:
        also = "".join(f"\n      {one}" for one in commands[1:])
        console = Console(stderr=True)
        console.print(f"next: {commands[0]}{also}", style="dim", highlight=False, soft_wrap=True, markup=False)


def finish(failed: Sequence[tuple[str, str]], folder: Path) -> None:
    """Name on standard error the runs that failed, with the reason, and the folder with all results."""
    console = Console(stderr=True)
    for run, why in failed[:MAX_FAILURES_SHOWN]:
        console.print(f"tailpack: {run}: {why}", highlight=False, soft_wrap=True, markup=False)
    if len(failed) > MAX_FAILURES_SHOWN:
        console.print(f"tailpack: … and {len(failed) - MAX_FAILURES_SHOWN} more runs without a result", highlight=False)
    console.print(f"tables and plots: {folder}", highlight=False, soft_wrap=True, markup=False)
