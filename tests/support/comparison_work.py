"""Jobs for worker processes of a matrix. They are in a module, so that the processes can import them."""

import os
import signal
import time

from bench.jobs import Job, Row
from contracts.validation import InvalidSettingsError


def invented_row(job: Job, *, in_sla: float = 0.99, replica_minutes: float = 30.0) -> Row:
    """Return an invented row of a run, without simulating it."""
    return {
        **{"scenario": job.scenario, "policy": job.policy, "seed": job.seed, "events": 1000, "in_sla": in_sla},
        **{"p50_s": 0.1, "p99_s": 0.4, "p999_s": 0.6, "max_s": 0.9, "lost": 0},
        **{"replica_minutes": replica_minutes, "packing_replica_minutes": 25.0},
        **{"scale_ups": 6, "scale_downs": 5, "reassignments": 4, "moved_partitions": 20},
    }


def quick(job: Job) -> Row:
    """Return a row at once."""
    return invented_row(job)


def refused(job: Job) -> Row:
    """Fail, because this job must not be run."""
    raise AssertionError(f"{job} was computed although it was known")


def eventful(job: Job) -> Row:
    """Fail by seed: 2 raises an error, 3 has wrong settings, 4 ends its process, 5 gets Ctrl-C."""
    if job.seed == 2:
        raise ZeroDivisionError("no replica left")
    if job.seed == 3:
        raise InvalidSettingsError(["payment.partitions = 0: must be at least 1"])
    if job.seed == 4:
        os._exit(9)
    if job.seed == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return invented_row(job)


def endless(job: Job) -> Row:
    """Return a row at once for seed 1, and never for other seeds."""
    if job.seed != 1:
        time.sleep(3600)
    return invented_row(job)
