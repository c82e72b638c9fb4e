"""Tables in Markdown, with the commands that made their figures below."""

from collections.abc import Iterable, Sequence

from bench.figures import Origin


def table(header: Sequence[str], rows: Iterable[Sequence[str]], origins: Iterable[Origin]) -> str:
    """Return a table; under it, once each, where its figures come from."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    sources = sorted({(one.command, one.commit, one.machine, one.measured_on) for one in origins})
    lines += ["", *(f"`{command}`, commit {commit}, {machine}, {day}  " for command, commit, machine, day in sources)]
    return "\n".join(lines) + "\n"


def known(value: float | None, times: float, how: str) -> str:
    """Return the value in another unit, – where there is none."""
    return "–" if value is None else format(times * value, how)
