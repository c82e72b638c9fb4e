"""`make soak MINUTES=120`: hours of moves and pauses. Memory and file descriptors stay flat, events are in time.

A load of 150 payments/s is served while the plan changes at random each ten seconds, and an operator pauses the
autoscaler for some seconds of each minute. The exit status is 1 if anything grows, or if fewer than 99.9 % are in time.
Ctrl-C ends the load early; what was measured is judged.
"""

import argparse
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil
from kafka_helpers import create_topics, wait_for
from live_autoscaler import Autoscaler
from payment_load import PaymentLoad
from tailpack_command import tailpack

from contracts.events import Timeline
from tailpack.local.broker import Broker

RATE, PARTITIONS, TARGET_US = 150.0, 9, 500_000
SAMPLE_S, PAUSE_EVERY_S, PAUSE_S = 5.0, 60.0, 15.0
WARM_UP = 0.2
"""Share of the time before samples count: caches fill."""
MORE_MIB, MORE_SHARE, MORE_FILES = 4.0, 0.05, 4
"""Growth of a process from the first third of its samples to the last that is within their noise."""
IN_TIME = 0.999

Sample = tuple[float, float, int]
"""Seconds since the load began, MiB of memory, and file descriptors of a process."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=120.0)
    minutes = parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="tailpack-soak-") as folder:
        broker = Broker(Path(folder) / "kafka")
        try:
            result = soak(broker.start(), Path(folder), 60 * minutes)
        finally:
            broker.stop()
    sys.stdout.write(json.dumps(result, indent=1) + "\n")
    return 1 if result["problems"] else 0


def soak(kafka: str, folder: Path, seconds: float) -> dict[str, object]:
    namespace = "soak"
    create_topics(kafka, namespace, PARTITIONS, 1)
    environ = os.environ | {"TAILPACK_BOOTSTRAP_SERVERS": kafka, "TAILPACK_NAMESPACE": namespace}
    policy = str(Path(__file__).with_name("soak_policy.py"))
    samples: dict[str, list[Sample]] = {}
    pauses = 0
    with Autoscaler(
        kafka, namespace, folder / "state", policy=policy, partitions=PARTITIONS, replica_module="services.payment"
    ) as auto:
        auto.wait_for_plan(1)
        assert auto.process is not None
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            began_s = time.monotonic()
            stopped: list[int] = []
            signal.signal(signal.SIGINT, lambda number, _: stopped.append(number))
            while (now_s := time.monotonic() - began_s) < seconds and not stopped:
                for name, pid in {"autoscaler": auto.process.pid, **auto.pids()}.items():
                    if found := _sample(pid):
                        samples.setdefault(f"{name} {pid}", []).append((now_s, *found))
                if now_s > (pauses + 1) * PAUSE_EVERY_S:
                    pauses += 1
                    sizes = ", ".join(
                        f"{one} {rows[-1][1]:.0f} MiB" for one, rows in _throughout(samples, now_s).items()
                    )
                    sys.stderr.write(f"minute {pauses} of {seconds / 60:.0f}: {len(load.orders)} events; {sizes}\n")
                    words = ("pause", "--for", f"{PAUSE_S:.0f}s", "--reason", "soak")
                    assert tailpack(*words, deadline_s=60, environ=environ).returncode == 0
                time.sleep(max(0.0, SAMPLE_S - (time.monotonic() - began_s - now_s)))
        settled = wait_for(lambda: _settled(load), "all events", deadline_s=300, every_s=5)
        plans = len(auto.plans())
    in_time = sum((one.done_us or 0) - one.intended_us <= TARGET_US for one in settled.values()) / len(load.orders)
    growth = {name: _growth(rows, WARM_UP * now_s) for name, rows in _throughout(samples, now_s).items()}
    problems = [f"{name}: {what}" for name, of in growth.items() for what in _problems(of)]
    problems += [f"{in_time:.4%} in time"] if in_time < IN_TIME else []
    return {
        "minutes": round(now_s / 60, 1), "events": len(load.orders), "in_time": in_time, "plans": plans,
        "pauses": pauses, "processes": len(samples), "growth": growth, "problems": problems,
    }  # fmt: skip


def _settled(load: PaymentLoad) -> dict[str, Timeline]:
    """Return order → times once all are settled, else nothing."""
    found = {one.order_id: one.timeline for one in load.settled()}
    return found if len(found) == len(load.orders) else {}


def _sample(pid: int) -> tuple[float, int] | None:
    try:
        process = psutil.Process(pid)
        return process.memory_info().rss / 2**20, process.num_fds()
    except psutil.Error:
        return None


def _throughout(samples: dict[str, list[Sample]], until_s: float) -> dict[str, list[Sample]]:
    """Return the samples of the processes that ran from the warm-up on."""
    return {
        name: rows
        for name, rows in samples.items()
        if rows[0][0] < WARM_UP * until_s and rows[-1][0] > (1 - WARM_UP) * until_s
    }


def _growth(rows: list[Sample], from_s: float) -> dict[str, tuple[float, float]]:
    """Return the medians of the first and the last third after `from_s`: MiB, and file descriptors."""
    rows = [row for row in rows if row[0] >= from_s]
    third = max(1, len(rows) // 3)
    return {
        name: (round(median(row[at] for row in rows[:third]), 1), round(median(row[at] for row in rows[-third:]), 1))
        for name, at in (("mib", 1), ("files", 2))
    }


def _problems(of: dict[str, tuple[float, float]]) -> list[str]:
    (mib, later_mib), (files, later_files) = of["mib"], of["files"]
    grown = [f"memory {mib} → {later_mib} MiB"] if later_mib > mib * (1 + MORE_SHARE) + MORE_MIB else []
    return grown + ([f"{files:.0f} → {later_files:.0f} files"] if later_files > files + MORE_FILES else [])


if __name__ == "__main__":
    sys.exit(main())
