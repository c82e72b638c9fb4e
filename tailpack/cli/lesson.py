"""`tailpack lesson`: list the lessons, open one, and check an answer."""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tailpack.cli.options import AsJson, print_json
from tailpack.errors import require

Number = Annotated[str, typer.Argument(metavar="N", help="Number of a lesson.")]


def _checker() -> Any:
    from tailpack.lab.course import LESSONS, load  # noqa: PLC0415  compiled code only where it is needed

    return load(LESSONS / "checker.py")


def list_lessons(as_json: AsJson = False) -> None:
    """List the lessons, with minutes."""
    known = _checker().exercises()
    if as_json:
        print_json([{"lesson": number, "title": one.title, "minutes": one.minutes} for number, one in known.items()])
        return
    table = Table("lesson", "minutes", "title", box=None)
    for number, one in known.items():
        table.add_row(number, str(one.minutes), one.title)
    Console().print(table)


def open_lesson(number: Number) -> None:
    """Copy a lesson into this folder, unless it is there, and edit it in a browser."""
    name = f"lesson_{_checker().number_of(number)}.py"
    require("marimo")
    if not Path(name).exists():
        shutil.copyfile(Path(_checker().__file__).with_name(name), name)
    raise typer.Exit(subprocess.call([sys.executable, "-m", "marimo", "edit", name]))


def check_lesson(
    number: Number,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your answer (Python).")],
    *,
    as_json: AsJson = False,
) -> None:
    """Check an answer in a process of its own; status 1: wrong. TAILPACK_LESSON_SEED draws hidden cases."""
    verdict = _checker().check(number, file)
    if as_json:
        print_json(verdict)
    else:
        typer.echo(str(verdict))
    if not verdict.passed:
        raise typer.Exit(1)
