"""reference/cli.md, from the commands of the command line."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from generators import BREAK, bullets, head, joined, wrapped
from tailpack.cli.main import app


def leaves(command: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (path, command with its options) of every command."""
    for name, one in command.commands.items():
        if hasattr(one, "commands"):
            yield from leaves(one, f"{path} {name}".strip())
        else:
            yield f"{path} {name}".strip(), one.load()


def _parameter(one: Any) -> tuple[str, str]:
    """Return what the user types, and its meaning with the default."""
    of = one.type_descriptor.annotation
    metavar = one.metavar or {int: "N", float: "NUMBER", Path: "PATH"}.get(of, "TEXT")
    shown = one.default not in (None, False, "", 0) and not callable(one.default)
    meaning = (one.help or "").strip() + (f" Default: {one.default}." if shown else "")
    if one.param_type_name == "argument":
        return metavar.strip("[]"), meaning
    return max(one.opts, key=len) + ("" if one.is_flag else f" {metavar}"), meaning


def page() -> str:
    """Return the page. An option that several commands have in the same form is listed once."""
    commands = dict(leaves(typer.main.get_command(app)))
    for_all = {path: one for path, one in commands.items() if not path.startswith("dev ")}
    uses = Counter(_parameter(param) for command in for_all.values() for param in command.params)
    shared = [one for one, count in uses.items() if count > 1]
    parts = [head("cli")]
    for path, command in for_all.items():
        parts += [f"## tailpack {path}", *map(wrapped, command.help.split(BREAK))]
        parts.append(command.epilog.replace("Example: ", "Example: `") + "`")
        own = [_parameter(param) for param in command.params]
        if lines := [f"`{typed}`: {meaning}" for typed, meaning in own if (typed, meaning) not in shared]:
            parts.append(bullets(lines))
        if also := ", ".join(f"`{one[0].split()[0]}`" for one in own if one in shared):
            parts.append(wrapped(f"[Common options](#common-options): {also}."))
    parts += ["## Common options", bullets(f"`{typed}`: {meaning}" for typed, meaning in shared)]
    parts += ["## Commands for maintainers", "They show their options with `--help`."]
    dev = [item for item in commands.items() if item[0] not in for_all]
    parts.append(bullets(f"`tailpack {path}`: {one.help.partition(BREAK)[0]}" for path, one in dev))
    return joined(parts)
