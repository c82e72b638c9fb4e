"""Templates, style and script of the pages; what both of them need."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from report.causes import meaning, title
from report.page.drawing.svg import NARROW_PX, WIDE_PX
from report.result import LateEpisode
from report.wording import count, duration, moment, share

HERE: Final = Path(__file__).parent
UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|ms|s|MiB|pp)(?!\w))")


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
        count=count, duration=duration, moment=moment, share=share, cause=title, meaning=meaning, known=known,
        latency=latency, span=span, tied=tied,
    )  # fmt: skip
    return environment.get_template(template).render(css=part("page.css"), **values)


def write_page(html: str, path: Path) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(html, encoding="utf-8")
    temporary.replace(path)


def part(name: str) -> str:
    """Return the text of a file that stands beside this one."""
    return (HERE / name).read_text(encoding="utf-8")


def both(draw: Callable[[int], str]) -> dict[str, str]:
    """Return a drawing for wide pages and one for narrow ones."""
    return {"wide": draw(WIDE_PX), "narrow": draw(NARROW_PX)}


def tied(text: str) -> str:
    """Return the text with each number tied to its unit, so that no line ends between them."""
    return UNIT.sub("\u00a0", text)


def known(value: object) -> str:
    """Return the value, "–" for none."""
    return "–" if value is None else str(value)


def latency(value_s: float | None) -> str:
    """Return the latency of a late event, which may never have been done."""
    return "never done" if value_s is None else duration(value_s)


def span(spell: LateEpisode) -> str:
    """Return when a spell was: one moment, or from – until."""
    first, last = moment(spell.from_s), moment(spell.until_s)
    return first if first == last else f"{first} – {last}"
