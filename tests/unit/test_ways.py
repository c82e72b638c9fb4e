"""The ways of docs/project/ways.toml: each function exists and names the next. Links of pages lead to what exists."""

import ast
import re
import tomllib
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WAYS = tomllib.loads((ROOT / "docs" / "project" / "ways.toml").read_text(encoding="utf-8"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


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


@pytest.mark.parametrize("way", WAYS)
def test_each_step_exists_and_leads_to_the_next(way: str) -> None:
    steps = WAYS[way]["steps"]
    assert len({file for file, *_ in steps}) <= WAYS[way]["most_files"]
    for file, name, *_ in steps:
        assert name in definitions(file), f"{file} has no {name}"
    names = {qualified.rpartition(".")[2] for file, *_ in steps for qualified in definitions(file)}
    for caller in re.findall(r"(?:by|back in) `(?:\w+\.)?(\w+)`", "".join(str(remark) for *_, remark in steps)):
        assert caller in names, f"{way}: no function is called {caller}"
    for at, (before, after) in enumerate(pairwise(steps)):
        if not any("⇒" in remark for remark in before[2:]):
            known = set().union(*(leads_to(file, name) for file, name, *_ in steps[: at + 1]))
            wanted = after[1].rpartition(".")[2]
            assert wanted in known, f"{way}: nothing up to step {at + 1} names {after[1]} of {after[0]}"


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings, as forges make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)", text, re.MULTILINE)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\]\(.*?\)", "", one)).strip().lower().replace(" ", "-") for one in headings
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_and_headings_that_exist(page: Path) -> None:
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = page.parent / link if link else page
        assert target.exists(), link
        assert not anchor or target.suffix != ".md" or anchor in anchors(target), f"{link}#{anchor}"
