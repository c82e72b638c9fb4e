"""Tables in Markdown, with the commands that made their figures below."""

from collections.abc import Iterable, Sequence
from typing import Final

from bench.figures import Origin

LISTED: Final = 3
"""Commands that are named one by one; of more, which differ in an option each, the first stands for all."""


def table(header: Sequence[str], rows: Iterable[Sequence[str]], origins: Iterable[Origin]) -> str:
    """Return a table; under it, once each, where its figures come from."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *_sources(origins)]) + "\n"


def known(value: float | None, times: float, how: str) -> str:
    """Return the value in another unit, – where there is none."""
    return "–" if value is None else format(times * value, how)


def _sources(origins: Iterable[Origin]) -> list[str]:
    sources = sorted({(one.command, one.commit, one.machine, one.measured_on) for one in origins})
    if len(sources) <= LISTED:
        return [f"`{command}`, commit {commit}, {machine}, {day}  " for command, commit, machine, day in sources]
    commits, machines, days = ("; ".join(sorted({one[i] for one in sources})) for i in (1, 2, 3))
    first = sources[0][0]
    return [
        f"`{first}` and {len(sources) - 1} commands like it, commits {commits}, {machines}, {days}; "
        "each row of bench/reference names its own  "
    ]
