"""What the commands that simulate a lot have in common: names on the command line, progress, interruption."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from bench.comparison.campaign import Campaign
from bench.comparison.compare import Missing
from bench.comparison.job import simulated
from bench.comparison.workers import Work, usable_cores
from tailpack.errors import TailpackError

SHOWN: Final = 5
"""Failed runs that are named; they mostly fail for the same reason."""


@contextmanager
def campaign(what: str, folder: Path, processes: int, work: Work = simulated) -> Iterator[Campaign]:
    """Yield a campaign that shows on standard error how far it is.

    processes: 0 means one for each core. work: how a job is done. When interrupted, says what is kept.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[said]}"),
    )
    done = 0
    with Progress(*columns, console=console, transient=True) as shown:
        task = shown.add_task(what, total=None, said="")

        def announce(said: str, now: int, total: int) -> None:
            nonlocal done
            done = now
            shown.update(task, completed=now, total=total, said=said)

        try:
            yield Campaign(folder, processes or usable_cores(), announce, work)
        except KeyboardInterrupt:
            shown.stop()
            console.print(f"{done} finished runs are kept in {folder}; the same command goes on", highlight=False)
            raise


def names(text: str, known: Iterable[str], *, what: str) -> list[str]:
    """Return the names in a list separated by commas, each once. Raises TailpackError for one that is not known."""
    found = list(dict.fromkeys(one.strip() for one in text.split(",") if one.strip()))
    if not found:
        raise TailpackError(f"name at least one {what}")
    unknown = [one for one in found if one not in known and not one.endswith(".toml")]
    if unknown:
        raise TailpackError(f"{what} {', '.join(map(repr, unknown))}: unknown; known are {', '.join(known)}")
    return found


def show(markdown: str) -> None:
    """Print a page: rendered on a terminal, as it is elsewhere."""
    console = Console()
    if console.is_terminal:
        from rich.markdown import Markdown  # noqa: PLC0415  only where somebody looks

        console.print(Markdown(markdown))
    else:
        console.out(markdown, highlight=False)


def finish(missing: Sequence[Missing], folder: Path, page: str = "") -> None:
    """Name on standard error the runs that failed, where everything lies, and the page to open if there is one."""
    console = Console(stderr=True)
    for one in missing[:SHOWN]:
        console.print(f"tailpack: {one.run}: {one.why}", highlight=False, soft_wrap=True, markup=False)
    if len(missing) > SHOWN:
        console.print(f"tailpack: … and {len(missing) - SHOWN} more runs without a result", highlight=False)
    console.print(f"tables and plots: {folder}", highlight=False, soft_wrap=True, markup=False)
    if page and (folder / page).exists():
        console.print(f"page: {folder / page}", highlight=False, soft_wrap=True, markup=False)
