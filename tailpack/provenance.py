"""Where a figure comes from: commit, versions, machine."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import psutil

REPORTED: Final = ("tailpack", "aiokafka", "confluent-kafka", "faust-streaming", "locust", "pyspark")


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
    for name in REPORTED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def machine() -> str:
    """Return cores, memory and system in one phrase."""
    memory_gib = psutil.virtual_memory().total / 2**30
    return f"{os.cpu_count()} cores, {memory_gib:.0f} GiB, {platform.system()} {platform.machine()}"
