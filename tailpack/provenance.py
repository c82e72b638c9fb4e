"""Create and find folders of runs, and describe the origin of a run: command, commit, versions and machine."""

import datetime
import os
import platform
import shlex
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import psutil

from bench.scenario import Scenario
from contracts.connection import Connection
from report.run_info import RUN_FILE, RunInfo
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from bench.simulation.sent_events import SentEvents

REPORTED_PACKAGES: Final = ("tailpack", "aiokafka", "confluent-kafka", "faust-streaming", "locust", "pyspark")


def describe(scenario: Scenario, connection: Connection, command: str) -> RunInfo:
    """Return the description of a run at its start. Its name is the namespace of its topics."""
    return RunInfo(
        run=connection.namespace,
        scenario=msgspec.to_builtins(scenario),
        policy=scenario.autoscaler.policy,
        seed=scenario.seed,
        topology=scenario.topology.value,
        bootstrap_servers=connection.bootstrap_servers,
        client_properties=connection.client_properties,
        payment_partitions=scenario.payment.partitions,
        latency_target_s=scenario.target.latency_target_s,
        percentile=scenario.target.percentile,
        duration_s=scenario.duration_s,
        commit=commit(),
        command=command,
        versions=versions(),
        machine=machine(),
    )


def describe_simulated(scenario: Scenario, sent: "SentEvents", drained_us: int, folder: Path) -> RunInfo:
    """Return the description of a simulated run. Its name is that of its folder, and second 0 is at time 0.

    sent: the events of the scenario, or of a trace. drained_us: time at which the last event was done.
    """
    info = describe(scenario, Connection(bootstrap_servers="simulated"), command())
    load, payment = info.scenario["load"], info.scenario["payment"]
    return msgspec.structs.replace(
        info,
        run=folder.resolve().name,
        scenario=info.scenario
        | {
            "topology": "payment-only",
            "duration_s": sent.duration_s,
            "load": load | {"split": sent.split.value},
            "payment": payment | {"partitions": sent.partitions},
        },
        topology="payment-only",
        world="simulated",
        payment_partitions=sent.partitions,
        duration_s=float(sent.duration_s),
        started_us=0,
        drained_us=drained_us,
        events_scheduled=sent.events,
    )


def origin() -> dict[str, str]:
    """Return the provenance of figures: command, commit, machine, date."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"command": command(), "commit": commit(), "machine": machine(), "measured_on": today}


def command() -> str:
    """Return the running command as a user would type it."""
    return shlex.join(["tailpack", *sys.argv[1:]])


def commit() -> str:
    """Return the short commit of the checkout, with + if it has changes; "" outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def versions() -> dict[str, str]:
    """Return the versions of the software that determines how a run behaves."""
    found = {"python": platform.python_version(), "kafka": "4.3.1"}
    for name in REPORTED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Return cores, memory and system as text."""
    memory_gib = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}"


def check_no_run(folder: Path) -> Path:
    """Return `folder`, which need not exist. Raises TailpackError if it already holds a run."""
    if (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} already holds a run; choose another name, or move the folder")
    return folder


def new_folder(out: Path, scenario: str) -> Path:
    """Create and return a folder for one run, named after the scenario and the time."""
    for attempt in range(100):
        name = f"{scenario}-{time.strftime('%Y%m%d-%H%M%S')}" + (f"-{attempt}" if attempt else "")
        try:
            (out / name).mkdir(parents=True)
        except FileExistsError:
            continue
        return out / name
    raise TailpackError(f"{out} already holds 100 runs of this second; try again")
