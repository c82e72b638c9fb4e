"""reference/scenarios.md and policies.md, and project/code-tour.md: lists of what exists."""

from dataclasses import fields
from typing import Final

from autoscaler.policies.registry import POLICIES
from autoscaler.policies.settings import Factors
from bench.scenario import load_scenario, scenario_names, stress_names
from generators import bullets, data, head, joined, sentence, wrapped

USUAL: Final = (600, 5)
"""Length (s) and partitions of most scenarios."""


def scenarios_page() -> str:
    """Return the page of the scenarios."""
    parts = [head("scenarios")]
    found = [load_scenario(name) for name in scenario_names()]
    groups = {
        "The whole pipeline": [one for one in found if one.topology == "pipeline"],
        "Payments only": [one for one in found if one.topology != "pipeline" and one.name not in stress_names()],
        "Stress scenarios: each tries to break policies in one way": [
            one for one in found if one.name in stress_names()
        ],
    }
    for title, members in groups.items():
        lines = []
        for one in members:
            sizes = zip((one.duration_s, one.payment.partitions), USUAL, (" s", " partitions"), strict=True)
            differs = ", ".join(f"{size}{unit}" for size, usual, unit in sizes if size != usual)
            lines.append(f"`{one.name}`{f' ({differs})' if differs else ''}: {one.description}")
        parts += [f"## {title}", bullets(lines)]
    return joined(parts)


def policies_page() -> str:
    """Return the page of the policies."""
    parts = [head("policies")]
    for name, one in POLICIES.items():
        options = ", ".join(f"`{field.name}`" for field in fields(one.options))
        anchor = "thresholds" if one.options is Factors else f"policy-{name}"
        linked = f"[Options](settings.md#{anchor}): {options}." if options else "It has no options."
        parts += [f"## {name}", wrapped(sentence(one.description))]
        parts.append(wrapped(linked))
    return joined(parts)


def code_tour_page() -> str:
    """Return the page of the ways through the code."""
    parts = [head("code-tour")]
    for way in data("project/ways.toml").values():
        steps = [
            " ".join((f"{number}. `{file}`: `{name}`", *remark))
            for number, (file, name, *remark) in enumerate(way["steps"], 1)
        ]
        parts += [f"## {way['title']}", sentence(way["about"]), "\n".join(steps)]
    return joined(parts)
