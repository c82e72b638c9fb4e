"""The folder of a run, and its origin: scenario, commit, command, versions, machine."""

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
    """Return the beginning of run.json. The run is named as its topics' namespace."""
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
    """Return run.json of a simulated run, named as its folder, with what was really sent; its second 0 is 0.

    sent: by the scenario, or by the trace in its place. drained_us: when the last event was done.
    """
    asked = describe(scenario, Connection(bootstrap_servers="simulated"), command())
    load, payment = asked.scenario["load"], asked.scenario["payment"]
    return msgspec.structs.replace(
        asked,
        run=folder.resolve().name,
        scenario=asked.scenario
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
    """Return where and how figures are measured: command, commit, machine, date."""
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return {"command": command(), "commit": commit(), "machine": machine(), "measured_on": today}


def command() -> str:
    """Return the command that is running, as it would be typed."""
    return shlex.join(["tailpack", *sys.argv[1:]])


def commit() -> str:
    """Return the checkout's short commit, with + when files differ from it; "" outside a checkout."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""


def versions() -> dict[str, str]:
    """Return the versions that decide how a run behaves."""
    found = {"python": platform.python_version(), "kafka": "4.3.1"}
    for name in REPORTED_PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Return cores, memory and system in one phrase."""
    memory_gib = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}"


def check_no_run(folder: Path) -> Path:
    """Return `folder`, which need not be there. Raises TailpackError when it holds a run already."""
    if (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} holds a run already; choose another name, or move it away")
    return folder


def newest_run(out: Path = Path("out")) -> Path | None:
    """Return the folder of the run in `out` that was made last; None where there is none."""
    found = max(out.glob(f"*/{RUN_FILE}"), key=lambda file: file.stat().st_mtime, default=None)
    return found and found.parent


def new_folder(out: Path, scenario: str) -> Path:
    """Make and return a folder for one run, named after the scenario and the time."""
    for attempt in range(100):
        name = f"{scenario}-{time.strftime('%Y%m%d-%H%M%S')}" + (f"-{attempt}" if attempt else "")
        try:
            (out / name).mkdir(parents=True)
        except FileExistsError:
            continue
        return out / name
    raise TailpackError(f"{out} holds a hundred runs of this very second")
