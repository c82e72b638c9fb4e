"""`tailpack scenarios` and `tailpack policies`: what there is to choose from."""

import sys
from dataclasses import fields
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from contracts.settings import declaration, is_required, sentences
from tailpack.cli.options import AsJson, complete_policy, print_json, several_policies


def scenarios(as_json: AsJson = False) -> None:
    """List the scenarios: what they ask, for how long, of which policy; the hard worlds apart."""
    from bench.scenario import load_scenario, scenario_names, world_names  # noqa: PLC0415

    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print_json(found)
        return
    table = Table("scenario", "topology", "seconds", "partitions", "policy", "what it asks", box=None)
    for one in found:
        if one.name == world_names()[0]:
            table.add_section()
            table.add_row("[bold]hard worlds[/bold]")
        heading = (one.name, one.topology, str(one.duration_s), str(one.payment.partitions), one.autoscaler.policy)
        table.add_row(*heading, one.description)
    Console().print(table)


def policies(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Of one: its options.", autocompletion=complete_policy)
    ] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """List the policies and how they decide; of one, its options and their defaults, for --set policy.OPTION=VALUE."""
    from autoscaler.policies.registry import all_policies, policy_factory  # noqa: PLC0415

    if not name:
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
        return
    factory = policy_factory(several_policies(name)[0])
    record = factory.options
    defaults = {one.name: None if is_required(one) else one.default for one in fields(record)}
    if as_json:
        print_json(defaults)
        return
    table = Table(box=None, title=factory.description)
    for heading in ("option", "default", "unit", "what it is"):
        table.add_column(heading, overflow="fold")
    said = sentences(record)
    for option in fields(record):
        declared, default = declaration(option), defaults[option.name]
        told = "none" if default is None else f"{default}"
        table.add_row(option.name, told, declared.unit, f"{said[option.name]} {declared.range()}".strip())
    Console().print(table)


def settings() -> None:
    """Print all settings with their defaults, ranges and sentences, as Markdown."""
    from tailpack.declared_pages import settings_page  # noqa: PLC0415

    sys.stdout.write(settings_page())


def metrics() -> None:
    """Print all metrics with their types, labels, units and sentences, as Markdown."""
    from tailpack.declared_pages import metrics_page  # noqa: PLC0415

    sys.stdout.write(metrics_page())
