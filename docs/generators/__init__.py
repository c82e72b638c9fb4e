"""The generated pages of the documentation, and what their Markdown is made of."""

import textwrap
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).parents[1]
WIDTH: Final = 100
BREAK: Final = "\n\n"


def data(path: str) -> dict[str, Any]:
    """Read a TOML file below docs/."""
    return tomllib.loads((DOCS / path).read_text(encoding="utf-8"))


def head(page: str) -> str:
    """Return what a page begins with: its title and introduction."""
    return str(data("generators/heads.toml")[page]).strip()


def joined(parts: Iterable[str]) -> str:
    """Return a page of these parts."""
    return BREAK.join(parts) + "\n"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table."""
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row).rstrip() for row in (header, *rows)]
    return "\n".join([lines[0], "|".join(["---"] * len(header)), *lines[1:]])


def wrapped(text: str, first: str = "", other: str = "") -> str:
    """Return a paragraph in lines of WIDTH. first, other: indent of the first line, and of the others."""
    return textwrap.fill(
        " ".join(text.split()),
        WIDTH,
        initial_indent=first,
        subsequent_indent=other,
        break_long_words=False,
        break_on_hyphens=False,
    )


def bullets(entries: Iterable[str]) -> str:
    """Return a list. Further paragraphs of an entry become a list below it."""
    lines = []
    for entry in entries:
        text, *below = entry.split(BREAK)
        lines += [wrapped(text, "- ", "  "), *(wrapped(one, "  - ", "    ") for one in below)]
    return "\n".join(lines)


def sentence(text: str) -> str:
    """Return a text that begins with a capital and ends with a full stop."""
    return f"{text[0].upper()}{text[1:].removesuffix('.')}."
