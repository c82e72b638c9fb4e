"""`tailpack list` and `tailpack show`: print scenarios, policies and settings."""

import ast
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from math import isfinite
from typing import Annotated, Any, get_args, get_type_hints

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from contracts.settings import DAY_S, Setting, setting_of, words_of
from tailpack.cli.options import AsJson, check_policy, complete_policy, complete_scenario, lowercase, print_json
from tailpack.errors import TailpackError


def is_required(declared: "Field[Any]") -> bool:
    """Return whether a setting has no default."""
    return declared.default is declared.default_factory is MISSING


def sentences(record: type) -> dict[str, str]:
    """Return setting → its docstring in one line, including inherited settings."""
    found: dict[str, str] = {}
    for base in reversed([base for base in record.__mro__ if "__annotations__" in vars(base)]):
        (of_class,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for statement, after in pairwise(of_class.body):  # type: ignore[attr-defined]
            match statement, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


def described(record: type) -> Iterator[tuple[str, str, str]]:
    """Yield (name, default with its range, meaning) of each setting. Raises KeyError if one has no docstring."""
    texts, types = sentences(record), get_type_hints(record)
    for field in fields(record):
        declared = setting_of(field)
        words = declared.known or (() if float in get_args(types[field.name]) else words_of(types[field.name]))
        unsaid = not all(f"`{word}`" in texts[field.name] for word in words)
        choice = f" One of {', '.join(map(str, filter(None, words)))}." if unsaid else ""
        default = "required" if is_required(field) else _default(field.default)
        limits = _range(declared)
        yield field.name, f"{default} ({limits})" if limits else default, texts[field.name] + choice


def _default(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case tuple():
            return ", ".join(one if isinstance(one, str) else f"{one:g}" for one in value) or "none"
        case int() | float():
            return f"{value:g}"
        case _:
            return str(value) or "empty"


def _range(declared: Setting) -> str:
    """Return the limits of a setting, such as "0–1". Limits that all durations have are left out."""
    most = declared.below if declared.most == DAY_S else min(declared.most, declared.below)
    if declared.least >= 0 and isfinite(declared.most) and most == declared.most:
        return f"{declared.least:.10g}–{most:.10g}"
    least = "" if declared.least == 0 and declared.unit == "s" else f"≥{declared.least:g}"
    limits = [f">{declared.above:g}" if isfinite(declared.above) else least if isfinite(declared.least) else ""]
    limits += [f"{'≤' if most == declared.most else '<'}{most:g}" if isfinite(most) else ""]
    return ", ".join(filter(None, limits))


def list_scenarios(as_json: AsJson = False) -> None:
    """List the scenarios with duration, partitions and policy; stress scenarios form the last section."""
    from bench.scenario import load_scenario, scenario_names, stress_names  # noqa: PLC0415

    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print_json(found)
        return
    table = Table("scenario", "topology", "seconds", "partitions", "policy", "what it tests", box=None)
    for scenario in found:
        if scenario.name == stress_names()[0]:
            table.add_section()
            table.add_row("[bold]stress scenarios[/bold]")
        counts = map(str, (scenario.duration_s, scenario.payment.partitions))
        table.add_row(scenario.name, scenario.topology, *counts, scenario.autoscaler.policy, scenario.description)
    Console().print(table)


def list_policies(as_json: AsJson = False) -> None:
    """List the policies, and how each one decides."""
    from autoscaler.policies.registry import POLICIES, policy_factory, policy_names  # noqa: PLC0415

    usable, unusable = dict(POLICIES), []
    for name in policy_names()[len(POLICIES) :]:
        try:
            usable[name] = policy_factory(name)
        except ValueError as error:
            unusable.append(str(error))
    for line in unusable:
        sys.stderr.write(f"tailpack: policy {line}\n")
    if as_json:
        print_json({name: factory.description for name, factory in usable.items()})
        return
    table = Table("policy", "how it decides", box=None)
    for name, factory in usable.items():
        table.add_row(name, factory.description)
    Console().print(table)


def show_policy(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_policy)], *, as_json: AsJson = False
) -> None:
    """Show the options of a policy and their defaults, for --set policy.OPTION=VALUE."""
    from autoscaler.policies.registry import policy_factory  # noqa: PLC0415

    factory = policy_factory(check_policy(name))
    record = factory.options
    if as_json:
        print_json({field.name: None if is_required(field) else field.default for field in fields(record)})
        return
    Console().print(_settings(described(record), factory.description))


def _settings(rows: Iterable[Sequence[str]], title: str = "") -> Table:
    table = Table("setting", "default (range)", "meaning", box=None, title=title)
    for row in rows:
        table.add_row(*row)
    return table


def show_scenario(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_scenario)], *, as_json: AsJson = False
) -> None:
    """Show all values of a scenario."""
    from bench.scenario import load_scenario  # noqa: PLC0415

    scenario = load_scenario(lowercase(name))
    if as_json:
        print_json(scenario)
        return
    for key, value in msgspec.to_builtins(scenario).items():
        for field, part in value.items() if isinstance(value, dict) else [("", value)]:
            typer.echo(f"{'.'.join(filter(None, (key, field)))} = {msgspec.json.encode(part).decode()}")


def show_setting(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of a setting, or a part of it.")],
) -> None:
    """Show the settings whose names contain NAME, with default, range and meaning."""
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415
    from bench.sections import SECTIONS  # noqa: PLC0415

    records = {f"{section}." if section else "": record for section, record in SECTIONS.items()}
    records |= {f"policy.({policy}) ": factory.options for policy, factory in POLICIES.items()}
    rows = [(f"{prefix}{key}", *words) for prefix, record in records.items() for key, *words in described(record)]
    if not (found := [row for row in rows if name.lower() in row[0]]):
        raise TailpackError(f"no setting contains {name!r}; docs/reference/settings.md lists all of them")
    Console().print(_settings(found))
