"""The ways of docs/architecture.md: each function that is named exists, and leads to the next."""

import ast
import re
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_FILES = {"order": 6, "payment": 6, "decision": 10, "plan": 7, "report": 10, "run": 12}
STEP = re.compile(r"^\d+\. `(?P<file>[\w/]+\.py)`: `(?P<name>[\w.]+)`(?P<handed_on>.*⇒)?", re.MULTILINE)
Step = tuple[str, str, bool]
"""File, qualified name, and whether what follows is reached through a topic, a queue or a process."""


def ways() -> dict[str, list[Step]]:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    parts = re.split(r"<!-- way: (\w+) -->", text)[1:]
    return {
        name: [
            (one["file"], one["name"], bool(one["handed_on"])) for one in STEP.finditer(part.split("<!-- end -->")[0])
        ]
        for name, part in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def definitions(file: str) -> dict[str, ast.AST]:
    """Return qualified name → definition of everything in a file, functions inside functions too."""
    found: dict[str, ast.AST] = {}

    def walk(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[prefix + child.name] = child
                walk(child, f"{prefix}{child.name}.")
            else:
                walk(child, prefix)

    walk(ast.parse((ROOT / file).read_text(encoding="utf-8")), "")
    return found


def named(node: ast.AST) -> set[str]:
    """Return every name and attribute in it."""
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return names | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def leads_to(file: str, name: str) -> set[str]:
    """Return what the function names, and what the functions of its own file that it names do."""
    own = definitions(file)
    direct = named(own[name])
    through = [node for qualified, node in own.items() if qualified.rpartition(".")[2] in direct]
    return direct.union(*map(named, through))


@pytest.mark.parametrize("way", MOST_FILES)
def test_each_step_exists_and_leads_to_the_next(way: str) -> None:
    steps = ways()[way]
    assert len(steps) > 3
    assert len({file for file, *_ in steps}) <= MOST_FILES[way]
    for file, name, _ in steps:
        assert name in definitions(file), f"{file} has no {name}"
    for at, (before, after) in enumerate(pairwise(steps)):
        if not before[2]:
            known = set().union(*(leads_to(file, name) for file, name, _ in steps[: at + 1]))
            wanted = after[1].rpartition(".")[2]
            assert wanted in known, f"{way}: nothing up to step {at + 1} names {after[1]} of {after[0]}"


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [one for one in links if not (page.parent / one).exists()] == []
