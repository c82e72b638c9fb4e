"""Lint the English of pages, docstrings, comments and command help. The rules are files of Vale, in styles/tailpack.

Vale itself is a Go binary that no package of PyPI contains. A gate that needs it would be skipped where it is missing;
this interpreter of its rules always runs, in three seconds. Where Vale exists, `vale README.md docs` finds the same.
"""

import argparse
import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, NamedTuple

import typer
import yaml
from markdown_it import MarkdownIt

from tailpack.cli.main import app

ROOT = Path(__file__).parents[2]
LEVELS = ["error", "warning", "suggestion"]
HAVE_COMMENTS = {".py", ".toml", ".sh", ".yml", ".yaml", ""}
COMMENT = re.compile(r"(?<!\S)# .*(?:\n[ \t]*# .*)*")
COMMENT_SIGN = re.compile(r"^[ \t]*# (?:noqa: [A-Z0-9, ]+|fmt: skip|shellcheck .*)?", re.MULTILINE)
SENTENCE_END = re.compile(
    r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?…][\"'”’)\]]*\s+(?=[\"'“‘(\[]*[^\sa-z])"
    r"|\.\n(?=[a-z_][\w, ]*: )"  # an argument's line in a docstring
)
MARKDOWN = MarkdownIt("commonmark").enable("table")


class Block(NamedTuple):
    """A paragraph, list item, table cell or heading, without its code."""

    place: str
    line: int
    text: str
    is_heading: bool = False

    def sentences(self) -> Iterator[tuple[int, str]]:
        """Yield each sentence with its offset in the text."""
        ends = [end.end() for end in SENTENCE_END.finditer(self.text)]
        for begin, end in zip([0, *ends], [*ends, len(self.text)], strict=True):
            yield begin, self.text[begin:end]


class Hit(NamedTuple):
    place: str
    line: int
    rule: str
    level: str
    message: str


class Rule:
    """A rule file of Vale: existence, substitution or occurrence, in paragraphs or in sentences."""

    def __init__(self, file: Path) -> None:
        spec = yaml.safe_load(file.read_text(encoding="utf-8"))
        self.name, self.level, self.message, self.most = file.stem, spec["level"], spec["message"], spec.get("max", 0)
        scope = spec.get("scope", "text")
        if scope not in ("text", "sentence", "sentence & ~heading"):
            raise ValueError(f"{file}: scope {scope!r} is not interpreted here")
        self.in_sentences, self.skips_headings = scope != "text", scope.endswith("~heading")
        swap: dict[str, str] = spec.get("swap", {})
        self.replacements = [one.replace("|", "' or '") for one in swap.values()]
        pattern = "|".join(f"({one})" for one in swap) or "|".join(spec.get("tokens", ())) or spec["token"]
        whole_words = spec["extends"] != "occurrence" and not spec.get("nonword")
        flags = re.IGNORECASE if spec.get("ignorecase") else re.NOFLAG
        self.pattern = re.compile(rf"\b(?:{pattern})\b" if whole_words else pattern, flags)

    def hits(self, block: Block) -> Iterator[Hit]:
        """Yield what is wrong in a block."""
        if self.skips_headings and block.is_heading:
            return
        for offset, text in block.sentences() if self.in_sentences else [(0, block.text)]:
            found = list(self.pattern.finditer(text.replace("\n", " ").rstrip()))
            if self.most:
                found = found[:1] if len(found) > self.most else []
            for one in found:
                replacement = [self.replacements[one.lastindex - 1]] if self.replacements and one.lastindex else []
                message = self.message
                for word in (*replacement, one[0]):
                    message = message.replace("%s", word, 1)
                line = block.line + block.text.count("\n", 0, offset + one.start())
                yield Hit(block.place, line, self.name, self.level, message)


RULES = [Rule(file) for file in sorted(Path(__file__).parent.glob("styles/tailpack/*.yml"))]


def in_markdown(place: str, text: str, first_line: int = 1) -> Iterator[Block]:
    """Yield the blocks of a Markdown text. A code span counts as one word; code blocks and HTML are left out."""
    stands_for = {"code_inline": "X", "softbreak": "\n", "hardbreak": "\n", "html_inline": ""}
    line, is_heading = 0, False
    for token in MARKDOWN.parse(text):
        line = token.map[0] if token.map else line
        if token.type == "inline":
            words = (stands_for.get(one.type, one.content) for one in token.children or ())
            yield Block(place, first_line + line, "".join(words), is_heading)
        is_heading = token.type == "heading_open"


def in_docstrings(place: str, source: str) -> Iterator[Block]:
    """Yield the blocks of the docstrings of modules, classes, functions, fields and constants."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                first, _, rest = text.partition("\n")
                yield from in_markdown(place, f"{first.strip()}\n{dedent(rest)}", node.lineno)


def in_comments(place: str, source: str) -> Iterator[Block]:
    """Yield each comment, with its continuation on the lines below."""
    for one in COMMENT.finditer(source):
        yield from in_markdown(place, COMMENT_SIGN.sub("", one[0]), source.count("\n", 0, one.start()) + 1)


def in_help(command: Any, place: str = "tailpack") -> Iterator[Block]:
    """Yield what `-h` prints of a command and its options, and of all commands below it."""
    real = command.load() if hasattr(command, "load") else command
    yield from in_markdown(f"{place} -h", real.help or "")
    for option in real.params:
        yield from in_markdown(f"{place} {option.opts[-1]}", getattr(option, "help", None) or "")
    for name, below in getattr(real, "commands", {}).items():
        yield from in_help(below, f"{place} {name}")


def blocks() -> Iterator[Block]:
    """Yield everything that is linted."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    for file in (Path(name) for name in names if (ROOT / name).is_file()):
        if file.suffix == ".md":
            yield from in_markdown(str(file), (ROOT / file).read_text(encoding="utf-8"))
        elif file.suffix in HAVE_COMMENTS:
            source = (ROOT / file).read_text(encoding="utf-8")
            yield from in_comments(str(file), source)
            yield from in_docstrings(str(file), source) if file.suffix == ".py" else ()
    yield from in_help(typer.main.get_command(app))


def lint(texts: Iterable[Block]) -> list[Hit]:
    """Return the hits of all rules, sorted by place and line."""
    return sorted(hit for text in texts for rule in RULES for hit in rule.hits(text))


def main() -> int:
    """Print each hit in some places, or everywhere. Return 1 if there is one, else 0."""
    parser = argparse.ArgumentParser()
    parser.add_argument("places", nargs="*", help="files, folders, or `tailpack` for the help of commands")
    parser.add_argument("--level", choices=LEVELS, default="error", help="the least serious level that is printed")
    given = parser.parse_args()
    levels, places = LEVELS[: LEVELS.index(given.level) + 1], tuple(given.places) or ""
    hits = [one for one in lint(blocks()) if one.level in levels and one.place.startswith(places)]
    for one in hits:
        sys.stdout.write(f"{one.place}:{one.line}: {one.rule}: {one.message}\n")
    return int(bool(hits))


if __name__ == "__main__":
    sys.exit(main())
