"""Show the progress of long commands, their failures, and a hint for the next step."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

LINE_INTERVAL_S: Final = 30.0
"""Interval of the progress lines if standard error is not a terminal."""
MAX_FAILURES_SHOWN: Final = 5
"""Maximum number of failed runs that are listed. They mostly fail for the same reason."""


@contextmanager
def progress(what: str, total: int | None = None) -> Iterator[Callable[..., None]]:
    """Show progress on standard error; yield a function that updates it. Its arguments: completed, total and status.

    A terminal shows a bar. A log gets a line every 30 s.
    """
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[status]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total, status="")
        started_s = line_s = time.monotonic()

        def update(completed: float | None = None, total: float | None = None, status: str = "") -> None:
            nonlocal line_s
            shown.update(task, completed=completed, total=total, status=status)
            if not sys.stderr.isatty() and (now_s := time.monotonic()) - line_s > LINE_INTERVAL_S:
                line_s, (at,) = now_s, shown.tasks
                done = f"{at.completed:,.0f}" + ("" if at.total is None else f" of {at.total:,.0f}")
                left = "" if at.time_remaining is None else f", about {at.time_remaining:.0f} s left"
                typer.echo(f"{what}: {done} after {now_s - started_s:.0f} s{left}", err=True)

        yield update


@contextmanager
def matrix_progress(what: str, folder: Path) -> Iterator[Callable[..., None]]:
    """Show the progress of a matrix as `progress` does. After Ctrl-C, print where finished runs are stored."""
    try:
        with progress(what) as update:
            yield update
    except KeyboardInterrupt:
        Console(stderr=True).print(f"finished runs are stored in {folder}; the same command continues there")
        raise


def show(markdown: str) -> None:
    """Print a page of Markdown: rendered on a terminal, as plain text elsewhere."""
    console = Console()
    if console.is_terminal:
        from rich.markdown import Markdown  # noqa: PLC0415  only for a terminal

        console.print(Markdown(markdown))
    else:
        console.out(markdown, highlight=False)


def next_step(*commands: str, as_json: bool = False) -> None:
    """Print on standard error which commands to use next, but only on a terminal and without --json."""
    if sys.stderr.isatty() and not as_json:
        also = "".join(f"\n      {command}" for command in commands[1:])
        console = Console(stderr=True)
        console.print(f"next: {commands[0]}{also}", style="dim", highlight=False, soft_wrap=True, markup=False)


def finish(failed: Sequence[tuple[str, str]], folder: Path) -> None:
    """Print on standard error the failed runs with their reasons, and the folder that has all results."""
    console = Console(stderr=True)
    for run, why in failed[:MAX_FAILURES_SHOWN]:
        console.print(f"tailpack: {run}: {why}", highlight=False, soft_wrap=True, markup=False)
    if len(failed) > MAX_FAILURES_SHOWN:
        console.print(f"tailpack: … and {len(failed) - MAX_FAILURES_SHOWN} more runs failed", highlight=False)
    console.print(f"tables and plots: {folder}", highlight=False, soft_wrap=True, markup=False)
