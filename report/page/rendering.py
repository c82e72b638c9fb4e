"""Templates, style and script of the pages; what both of them need."""

import re
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contracts.journal import AlternativeWeighed
from report.causes import meaning, title
from report.result import LateEpisode
from report.wording import UNKNOWN, count, duration, moment, several, share

HERE: Final = Path(__file__).parent
UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|ms|s|MiB|pp)(?!\w))")
NUMBER: Final = re.compile(r"[−+]?\d|–$")


def render(template: str, **values: Any) -> str:
    """Return a page: one file that needs nothing beside it."""
    environment = Environment(
        loader=PackageLoader("report.page", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        count=count, duration=lambda value: tied(duration(value)), moment=moment, cause=title, meaning=meaning,
        share=lambda value: tied(share(value)),
        kind=kind, latency=latency, place=place, span=span, tied=tied, weighed_as=weighed_as,
    )  # fmt: skip
    return environment.get_template(template).render(part=part, **values)


def write_page(html: str, path: Path) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(html, encoding="utf-8")
    temporary.replace(path)


def part(name: str) -> str:
    """Return the text of a file that stands beside this one."""
    return (HERE / name).read_text(encoding="utf-8")


def tied(text: str) -> str:
    """Return the text with each number tied to its unit, so that no line ends between them."""
    return UNIT.sub("\u00a0", text)


def kind(text: str) -> str:
    """Return the class of a cell: numbers stand at the right."""
    return "number" if NUMBER.match(text) and all(len(line) < 45 for line in text.splitlines()) else "words"


def latency(value_s: float | None) -> str:
    """Return the latency of a late event, which may never have been done."""
    return "never done" if value_s is None else duration(value_s)


def span(episode: LateEpisode) -> str:
    """Return when an episode was: one moment, or from – until."""
    first, last = moment(episode.from_s), moment(episode.until_s)
    return first if first == last else f"{first} – {last}"


def place(episode: LateEpisode) -> str:
    """Return where an episode was, as far as that is known."""
    parts = (("partition {}", episode.partition), ("{}", episode.replica), ("plan {}", episode.epoch))
    return ", ".join(words.format(value) for words, value in parts if value is not None) or UNKNOWN


def weighed_as(one: AlternativeWeighed) -> str:
    """Return what the policy expected of a plan."""
    moved = f", moving {several(one.moved, 'partition')}" if one.moved else ""
    return f"{several(one.replicas, 'replica')}{moved}: {share(one.in_sla)} in time, cost {one.cost_s:,.1f}"
