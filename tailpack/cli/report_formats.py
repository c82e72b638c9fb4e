"""The formats in which reports are handed over, and what the commands have in common on that."""

import os
import sys
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from report.page.sheets import Sheet

TABLES: Final = "tables"
"""Folder of CSV files in the folder of a run, or of a comparison."""


class Format(StrEnum):
    """How a report is handed over."""

    HTML = "html"
    JSON = "json"
    MARKDOWN = "markdown"
    CSV = "csv"


AsFormat = Annotated[
    Format,
    typer.Option(
        "--format",
        help="html: page in the folder, key figures here. json, markdown: all of it on standard output. "
        "csv: a file for each table in the folder, or one with --table on standard output.",
    ),
]
OneTable = Annotated[str, typer.Option("--table", metavar="NAME", help="With csv: this table, on standard output.")]


def chosen(form: Format, table: str, *, as_json: bool) -> Format:
    """Return the format that is wanted. Raises TailpackError where options contradict each other."""
    if as_json and form not in {Format.HTML, Format.JSON}:
        raise TailpackError(f"--json contradicts --format {form}")
    if table and form is not Format.CSV:
        raise TailpackError("--table is for --format csv")
    return Format.JSON if as_json else form


def hand_over(text: str) -> None:
    """Print `text`, all of it. Raises TailpackError where standard output does not take it."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as refused:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python would try the rest again at its end
        raise TailpackError(f"standard output does not take the report: {refused.strerror}") from refused


def hand_over_csv(sheets: "Iterable[Sheet]", folder: Path, table: str) -> None:
    """Print one table, or write all of them."""
    from report.page.sheets import csv_text, write_csv  # noqa: PLC0415

    by_name = {sheet.name: sheet for sheet in sheets}
    if not table:
        written = write_csv(by_name.values(), folder / TABLES)
        Console(stderr=True).print(f"written: {len(written)} tables in {folder / TABLES}", highlight=False)
    elif table in by_name:
        hand_over(csv_text(by_name[table]))
    else:
        raise TailpackError(f"no table is called {table}; there are {', '.join(by_name)}")
