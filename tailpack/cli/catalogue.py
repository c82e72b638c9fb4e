"""`tailpack list` and `tailpack show`: scenarios, policies and settings; the reference pages made of them."""

import ast
import inspect
import sys
import textwrap
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from typing import Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from contracts.settings import declaration
from tailpack.cli.options import AsJson, complete_policy, complete_scenario, plain, print_json, usable_policy
from tailpack.errors import TailpackError


def is_required(one: "Field[Any]") -> bool:
    """Tell whether a setting has no default."""
    return one.default is one.default_factory is MISSING


def sentences(record: type) -> dict[str, str]:
    """Return name → the text below each setting, in one line; of inherited ones too."""
    found: dict[str, str] = {}
    for base in reversed(record.__mro__[:-1]):
        (of_class,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        for one, after in pairwise(of_class.body):  # type: ignore[attr-defined]
            match one, after:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = " ".join(text.split())
    return found


def list_scenarios(as_json: AsJson = False) -> None:
    """List the scenarios with their length, partitions and policy; stress scenarios have a section of their own."""
    from bench.scenario import load_scenario, scenario_names, stress_names  # noqa: PLC0415

    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print_json(found)
        return
    table = Table("scenario", "topology", "seconds", "partitions", "policy", "what it tests", box=None)
    for one in found:
        if one.name == stress_names()[0]:
            table.add_section()
            table.add_row("[bold]stress scenarios[/bold]")
        counts = map(str, (one.duration_s, one.payment.partitions))
        table.add_row(one.name, one.topology, *counts, one.autoscaler.policy, one.description)
    Console().print(table)


def list_policies(as_json: AsJson = False) -> None:
    """List the policies and how they decide."""
    from autoscaler.policies.registry import all_policies  # noqa: PLC0415

    usable, refused = all_policies()
    for line in refused:
        sys.stderr.write(f"tailpack: policy {line}\n")
    if as_json:
        print_json({one: factory.description for one, factory in usable.items()})
        return
    table = Table("policy", "how it decides", box=None)
    for one, factory in usable.items():
        table.add_row(one, factory.description)
    Console().print(table)


def show_policy(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_policy)], *, as_json: AsJson = False
) -> None:
    """Show the options of a policy and their defaults, for --set policy.OPTION=VALUE."""
    from autoscaler.policies.registry import policy_factory  # noqa: PLC0415

    factory = policy_factory(usable_policy(name))
    record = factory.options
    defaults = {one.name: None if is_required(one) else one.default for one in fields(record)}
    if as_json:
        print_json(defaults)
        return
    table = Table(box=None, title=factory.description)
    for heading in ("option", "default", "unit", "what it is"):
        table.add_column(heading, overflow="fold")
    texts = sentences(record)
    for one in fields(record):
        declared, default = declaration(one), defaults[one.name]
        text = f"{texts[one.name]} {declared.range()}".strip()
        table.add_row(one.name, "none" if default is None else f"{default}", declared.unit, text)
    Console().print(table)


def show_scenario(
    name: Annotated[str, typer.Argument(metavar="NAME", autocompletion=complete_scenario)], *, as_json: AsJson = False
) -> None:
    """Show every value of a scenario."""
    from bench.scenario import load_scenario  # noqa: PLC0415

    scenario = load_scenario(plain(name))
    if as_json:
        print_json(scenario)
        return
    for key, value in msgspec.to_builtins(scenario).items():
        for field, one in value.items() if isinstance(value, dict) else [("", value)]:
            typer.echo(f"{'.'.join(filter(None, (key, field)))} = {msgspec.json.encode(one).decode()}")


def show_setting(name: Annotated[str, typer.Argument(metavar="NAME", help="All of a name, or a part of it.")]) -> None:
    """Show the settings whose names contain NAME, with default, range and meaning."""
    from tailpack.declared_pages import settings_like  # noqa: PLC0415

    if not (found := settings_like(name)):
        raise TailpackError(f"no setting contains {name!r}; all of them: tailpack dev docs settings")
    table = Table("setting", "default", "what it is", box=None)
    for row in found:
        table.add_row(*row)
    Console().print(table)


def settings() -> None:
    """Print all settings with their defaults, ranges and sentences, as Markdown."""
    from tailpack.declared_pages import settings_page  # noqa: PLC0415

    sys.stdout.write(settings_page())


def metrics() -> None:
    """Print all metrics with their types, labels, units and sentences, as Markdown."""
    from tailpack.declared_pages import metrics_page  # noqa: PLC0415

    sys.stdout.write(metrics_page())
