"""Whether a Spark master that is asked for is there at all: Spark itself asks for a minute, and then says little."""

import socket
import time
from typing import Final
from urllib.parse import urlsplit

from pyspark.sql import SparkSession

from report.spark.errors import ReportError

CONNECT_WITHIN_S: Final = 5.0
WORKERS_WITHIN_S: Final = 60.0
DRIVER_AND_ONE: Final = 2
STANDALONE: Final = "spark://"
KUBERNETES: Final = "k8s://"
KNOWN: Final = ("local", "yarn", STANDALONE, KUBERNETES)


def check_master(master: str) -> None:
    """Raise ReportError unless something listens where `master` is said to be; each address has 5 s for it."""
    if not master.startswith(KNOWN):
        raise ReportError(
            f"--master {master}: no master of Spark; as local[2], spark://HOST:7077 or k8s://https://HOST"
        )
    refusals = []
    for host, port in addresses(master):
        try:
            with socket.create_connection((host, port), CONNECT_WITHIN_S):
                return
        except OSError as refused:
            refusals.append(refused.strerror or str(refused) or type(refused).__name__)
    if refusals:
        raise ReportError(
            f"--master {master}: nothing answers there ({refusals[0]}); "
            "start it, or leave --master out to use this machine"
        )


def await_workers(spark: SparkSession) -> None:
    """Wait until a standalone master's worker gives `spark` its first executor.

    Raises ReportError when none does within a minute: Spark would wait for ever, and say nothing.
    """
    context = spark.sparkContext
    on_demand = context.getConf().get("spark.dynamicAllocation.enabled", "false") == "true"
    if on_demand or not context.master.startswith(STANDALONE):
        return
    deadline_s = time.monotonic() + WORKERS_WITHIN_S
    while context._jsc.sc().getExecutorMemoryStatus().size() < DRIVER_AND_ONE:
        if time.monotonic() > deadline_s:
            raise ReportError(
                f"--master {context.master}: no worker gave it a core within {WORKERS_WITHIN_S:.0f} s; "
                "are there workers, and are they free?"
            )
        time.sleep(0.2)  # nothing tells when a worker has come


def addresses(master: str) -> list[tuple[str, int]]:
    """Return host and port of each master that `master` names; none where it is no address (local[2], yarn).

    Raises ReportError for one that is not an address.
    """
    try:
        if master.startswith(STANDALONE):
            urls = [urlsplit(f"//{one}") for one in master.removeprefix(STANDALONE).split(",")]
            return [(url.hostname or "", _port(url.port)) for url in urls]
        if master.startswith(KUBERNETES):
            where = master.removeprefix(KUBERNETES)
            url = urlsplit(where if "://" in where else f"https://{where}")
            return [(url.hostname or "", url.port or (80 if url.scheme == "http" else 443))]
    except ValueError as wrong:
        raise ReportError(f"--master {master}: not an address ({wrong}); as spark://HOST:7077") from wrong
    return []


def _port(port: int | None) -> int:
    if port is None:
        raise ValueError("it has no port")
    return port
