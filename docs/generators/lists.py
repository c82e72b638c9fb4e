"""reference/scenarios.md and policies.md, and project/code-tour.md: lists of what exists."""

from dataclasses import fields

from autoscaler.policies.registry import POLICIES
from autoscaler.policies.settings import Factors
from bench.scenario import FOLDER, load_scenario, scenario_names, stress_names
from contracts.validation import table_in
from generators import bullets, data, head, joined, sentence, wrapped


def scenarios_page() -> str:
    """Return the page of the scenarios."""
    parts = [head("scenarios")]
    found = [load_scenario(name) for name in scenario_names()]
    starts = table_in(FOLDER / "starts.toml")
    special = {"Stress scenarios: each tries to break policies in one way": stress_names()}
    special |= {"Replicas that take seconds to start": list(starts)}
    named = {name for names in special.values() for name in names}
    groups = {
        "The whole pipeline": [one for one in found if one.topology == "pipeline"],
        "Payments only": [one for one in found if one.topology != "pipeline" and one.name not in named],
        **{title: [one for one in found if one.name in names] for title, names in special.items()},
    }
    for title, members in groups.items():
        lines = [f"`{one.name}`: {one.description}" for one in members]
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
