"""`tailpack init`: a commented file for a group, a scenario or a policy."""

import textwrap
from pathlib import Path
from typing import Annotated, Final

import typer

from tailpack.cli.catalogue import sentences
from tailpack.cli.options import lowercase, match_name
from tailpack.errors import TailpackError

GROUP: Final = {
    "": {
        "bootstrap_servers": '"kafka:9092"', "topic": '"orders"', "group": '"shipping"', "policy": '"tail-aware"',
        "latency_target_s": '"500ms"', "percentile": "0.999", "act": '"off"', "member_rate": "100.0",
        "startup_s": '"25s"', "http_port": "8080",
    },
    "rails": {"min_replicas": "1", "max_replicas": "12", "max_step_down": "1", "cool_down_down_s": '"60s"'},
}  # fmt: skip
SCENARIO: Final = {
    "": {"description": '"A spike without a warning"'},
    "load": {"workload": '"spike"', "spacing": '"poisson"', "split": '"random"'},
    "payment": {"partitions": "12", "service_time_s": '"5ms"'},
    "target": {"latency_target_s": '"500ms"', "percentile": "0.999"},
    "autoscaler": {"policy": '"tail-aware"', "max_replicas": "12"},
    "simulation": {"startup_s": '"10s"'},
}
POLICY: Final = '''\
"""Your own policy. Try it: tailpack simulate w1 --policy ./FILE"""

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.planning import replicas_for, scale_to
from autoscaler.policies.settings import PolicySettings


class Mine:
    """Serves what arrives, and the backlog within the latency target; it decides only a count."""

    name = "mine"

    def __init__(self, settings: PolicySettings) -> None:
        self.settings = settings

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the plan, and why. Use only the observation: equal observations must give equal plans."""
        rate = sum(load.arrival_rate for load in observation.partitions)  # events/s
        lag = sum(load.lag for load in observation.partitions)  # events that wait
        demand = rate + lag / self.settings.latency_target_s
        count = replicas_for(demand, 0.9 * observation.service_rate)
        return scale_to(observation, count, self.settings.replica_prefix, f"{rate:.0f} events/s, {lag} wait")
'''
NEXT: Final = {"group": "shadow", "scenario": "simulate", "policy": "simulate w1 --policy"}


def init(
    kind: Annotated[str, typer.Argument(metavar="group|scenario|policy", callback=lowercase, help="Kind of the file.")],
    file: Annotated[Path, typer.Argument(help="File to write; an existing one is not changed.")],
) -> None:
    """Write a commented file with the settings that matter: of an autoscaler, of a scenario, or a policy in Python."""
    from autoscaler.live.settings import AutoscalerSettings  # noqa: PLC0415  numpy only where it is needed
    from bench.sections import SECTIONS  # noqa: PLC0415
    from contracts.connection import Connection  # noqa: PLC0415

    kind = match_name(kind, NEXT, what="kind")
    meanings = sentences(Connection) | sentences(AutoscalerSettings)
    lines = [f"# Try it: tailpack {NEXT[kind]} ./{file.name}"]
    for section, values in {"group": GROUP, "scenario": SCENARIO, "policy": {}}[kind].items():
        lines += [f"[{section}]"] * bool(section)
        known = sentences(SECTIONS[section]) if kind == "scenario" else meanings
        for name, value in values.items():
            lines += textwrap.wrap(known[name], 100, initial_indent="# ", subsequent_indent="# ")
            lines.append(f"{name} = {value}\n")
    text = POLICY.replace("FILE", file.name) if kind == "policy" else "\n".join(lines)
    try:
        with file.open("x", encoding="utf-8") as created:
            created.write(text)
    except FileExistsError:
        raise TailpackError(f"{file} exists; choose another name") from None
    typer.echo(f"{file} is written; next: tailpack {NEXT[kind]} ./{file}")
