"""The size of the project stays within tests/unit/budgets.toml."""

import subprocess
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer
from generate import PAGES

from tailpack.cli.main import app

ROOT = Path(__file__).parents[2]
BUDGETS = tomllib.loads((Path(__file__).parent / "budgets.toml").read_text(encoding="utf-8"))
PRODUCT = (".py", ".js", ".css", ".jinja", ".html", ".toml", ".sh")
GENERATED = ("tests/golden/*", "*.lock")


@cache
def lines_by_file() -> dict[str, int]:
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name: (ROOT / name).read_bytes().count(b"\n") for name in names if (ROOT / name).is_file()}


def product(package: str = "") -> dict[str, int]:
    folders = (f"{package}/",) if package else tuple(f"{name}/" for name in BUDGETS["lines"])
    return {name: n for name, n in lines_by_file().items() if name.startswith(folders) and name.endswith(PRODUCT)}


def visible(command: Any) -> Iterator[str]:
    """Yield the names of the commands that help shows, leaves only."""
    for name, one in command.commands.items():
        if not one.hidden:
            yield from visible(one) if hasattr(one, "commands") else [name]


def test_every_package_has_a_budget() -> None:
    packages = {name.split("/")[0] for name in lines_by_file() if name.endswith("/__init__.py")} - {"docs", "tests"}
    assert packages | {"infra"} == set(BUDGETS["lines"])


@pytest.mark.parametrize("package", BUDGETS["lines"])
def test_a_package_stays_within_its_budget(package: str) -> None:
    lines, limit = sum(product(package).values()), BUDGETS["lines"][package]
    assert lines <= limit, f"{package}/ has {lines} lines, its limit is {limit}: delete first, see CONTRIBUTING.md"


@pytest.mark.parametrize("what", BUDGETS["whole"])
def test_the_whole_stays_within_its_budget(what: str) -> None:
    lines = lines_by_file()
    measured = {
        "product_lines": lambda: sum(product().values()),
        "product_files": lambda: len(product()),
        "test_lines": lambda: sum(n for name, n in lines.items() if name.startswith("tests/") and name.endswith(".py")),
        "generated_lines": lambda: sum(n for name, n in lines.items() if any(fnmatch(name, one) for one in GENERATED)),
        "commands": lambda: len(list(visible(typer.main.get_command(app)))),
        "readme_lines": lambda: lines["README.md"],
        "changelog_lines": lambda: lines["CHANGELOG.md"],
    }

    assert measured[what]() <= BUDGETS["whole"][what]


@pytest.mark.parametrize("what", BUDGETS["words"])
def test_pages_stay_within_their_budget(what: str) -> None:
    generated = [f"docs/{name}" for name in PAGES]
    names = {"docs": [name for name in lines_by_file() if name.endswith(".md")], "generated": generated}[what]
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in names]
    assert sum(any(map(str.isalnum, word)) for text in texts for word in text.split()) <= BUDGETS["words"][what]
