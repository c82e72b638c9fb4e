"""`tailpack scenarios` and `tailpack policies`: what there is to choose from."""

import sys
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tailpack.cli.options import AsJson, complete_policy, known, print_json


def scenarios(as_json: AsJson = False) -> None:
    """List the scenarios: what they ask, for how long, of which policy."""
    from bench.scenario import load_scenario, scenario_names  # noqa: PLC0415

    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        print_json(found)
        return
    table = Table("scenario", "topology", "seconds", "partitions", "policy", "what it asks", box=None)
    for one in found:
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
    from autoscaler.policies.registry import POLICIES, policy_options  # noqa: PLC0415

    if not name:
        if as_json:
            print_json({one: factory.description for one, factory in POLICIES.items()})
            return
        table = Table("policy", "how it decides", box=None)
        for one, factory in POLICIES.items():
            table.add_row(one, factory.description)
        Console().print(table)
        return
    options = policy_options(known(name, POLICIES, what="policy"))
    if as_json:
        print_json({one.name: one.default for one in options})
        return
    table = Table("option", "default", "unit", "what it is", box=None, title=POLICIES[name].description)
    for option in options:
        default = "none" if option.default is None else f"{option.default}"
        table.add_row(option.name, default, option.unit, f"{option.sentence} {option.range}".strip())
    Console().print(table if options else f"{name}: {POLICIES[name].description}; it has no options")


def settings() -> None:
    """Print all settings with their defaults, ranges and sentences, as Markdown."""
    from tailpack.settings_page import settings_page  # noqa: PLC0415

    sys.stdout.write(settings_page())
