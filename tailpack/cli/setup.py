"""`tailpack doctor` and `init`: what a machine lacks, and commented files to start with."""

import os
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Final

import psutil
import typer

from contracts.connection import Connection
from contracts.validation import cache_folder
from tailpack.cli.catalogue import sentences
from tailpack.cli.options import AsJson, Properties, Servers, lowercase, match_name, print_json
from tailpack.errors import TailpackError
from tailpack.local.jars import INSTALL_HINT, java
from tailpack.local.ports import free_ports

GB: Final = 1e9
SCALER_PORT: Final = 9090
ANSWER_S: Final = 5.0
OPTIONAL: Final = ("port", "Docker", "kubeconfig")
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
"""Your own policy. Try it: tailpack simulate w1 --policy FILE"""

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


def doctor(bootstrap_servers: Servers = "", client_properties: Properties = "", *, as_json: AsJson = False) -> None:
    """Check Python, Java, cores, memory, disk, ports, Docker, the kubeconfig and a Kafka, and print how to fix them.

    A row with – is only needed by some features. Exit status 1 with a ✗.
    """
    from confluent_kafka import KafkaException  # noqa: PLC0415  clients only where they are needed

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    folder = next(path for path in cache_folder().parents if path.exists())
    checks: dict[str, tuple[Callable[[], str], str]] = {
        "Python": (lambda: sys.version.split()[0], "install Python 3.11 or newer"),
        "Java": (java, INSTALL_HINT),
        "cores": (lambda: _enough(cores, 2, ""), "with fewer, events of the demo are late"),
        "memory": (lambda: _enough(psutil.virtual_memory().available / GB, 2, " GB free"), "end other processes"),
        "disk": (lambda: _enough(shutil.disk_usage(folder).free / GB, 2, " GB free"), "free disk space"),
        "port": (lambda: f"{free_ports([SCALER_PORT])[0]} is free", "tailpack scaler needs it, or grpc_port"),
        "Docker": (_docker, "images need it: install it, and let this user use it"),
        "kubeconfig": (_kubeconfig, "pods need it: set KUBECONFIG"),
    }
    if bootstrap_servers:
        kafka = Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties)
        checks["Kafka"] = (lambda: _brokers(kafka), "start it, or correct the address and the properties")
    rows: list[dict[str, Any]] = []
    for what, (find, fix) in checks.items():
        try:
            rows.append({"what": what, "ok": True, "found": find(), "fix": ""})
        except (TailpackError, OSError, ValueError, subprocess.SubprocessError, KafkaException) as error:
            why = error.args[0].str() if isinstance(error, KafkaException) else str(error).removesuffix(f"; {fix}")
            rows.append({"what": what, "ok": None if what in OPTIONAL else False, "found": why, "fix": fix})
    if as_json:
        print_json({"checks": rows})
    for row in () if as_json else rows:
        sign, fix = {True: "✓", False: "✗", None: "–"}[row["ok"]], row["fix"]
        typer.echo(f"{sign} {row['what']:<11}{row['found']}" + f"; {fix}" * bool(fix))
    if any(row["ok"] is False for row in rows):
        raise typer.Exit(1)


def _enough(amount: float, least: int, unit: str) -> str:
    if amount < least:
        raise ValueError(f"{amount:.3g}{unit}, {least} are needed")
    return f"{amount:.3g}{unit}"


def _docker() -> str:
    command = ["docker", "version", "--format", "{{.Server.Version}}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=ANSWER_S, check=False)
    if done.returncode:
        raise ValueError(done.stderr.strip().rpartition("\n")[2] or "it does not answer")
    return done.stdout.strip()


def _kubeconfig() -> str:
    path = Path(os.environ.get("KUBECONFIG") or "~/.kube/config").expanduser()
    if not path.exists():
        raise ValueError(f"{path} does not exist")
    return str(path)


def _brokers(connection: Connection) -> str:
    from confluent_kafka.admin import AdminClient  # noqa: PLC0415

    from contracts.preflight import client_config  # noqa: PLC0415

    count = len(AdminClient(client_config(connection)).list_topics(timeout=ANSWER_S).brokers)
    return f"{count} brokers at {connection.bootstrap_servers}"


def init(
    kind: Annotated[str, typer.Argument(metavar="group|scenario|policy", callback=lowercase, help="Kind of the file.")],
    file: Annotated[Path, typer.Argument(help="File to write; an existing one is not changed.")],
) -> None:
    """Write a commented file with the settings that matter: of an autoscaler, of a scenario, or a policy in Python."""
    from autoscaler.live.settings import AutoscalerSettings  # noqa: PLC0415  numpy only where it is needed
    from bench.sections import SECTIONS  # noqa: PLC0415

    kind = match_name(kind, NEXT, what="kind")
    if kind != "group" and file.suffix != (suffix := ".py" if kind == "policy" else ".toml"):
        raise TailpackError(f"{file}: the name of a {kind} must end in {suffix}")
    here = shlex.quote(f"./{file.name}")
    meanings = sentences(Connection) | sentences(AutoscalerSettings)
    lines = [f"# Try it: tailpack {NEXT[kind]} {here}"]
    for section, values in {"group": GROUP, "scenario": SCENARIO, "policy": {}}[kind].items():
        lines += [f"[{section}]"] * bool(section)
        known = sentences(SECTIONS[section]) if kind == "scenario" else meanings
        for name, value in values.items():
            lines += textwrap.wrap(known[name], 100, initial_indent="# ", subsequent_indent="# ")
            lines.append(f"{name} = {value}\n")
    text = POLICY.replace("FILE", here) if kind == "policy" else "\n".join(lines)
    try:
        with file.open("x", encoding="utf-8") as created:
            created.write(text)
    except FileExistsError:
        raise TailpackError(f"{file} exists; choose another name") from None
    place = shlex.quote(os.path.join(".", file))  # a Path would drop the dot
    typer.echo(f"{file} is written; next: tailpack {NEXT[kind]} {place}")
