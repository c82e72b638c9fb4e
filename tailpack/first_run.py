"""The first run on an unknown machine: code compiled, a rate that its cores carry, no set-up next to the load.

`python -m tailpack.first_run compile` compiles; with a number of seconds it prints how fast a core is.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import autoscaler

LOOPS_PER_ORDER: Final = 2_400
"""Two cores that made 280,000 loops/s spent the time of 1,950 loops on each order of the demo, all processes together.
With a quarter more, a core is free now and then, which 99.9 % in time needs."""
LEAST: Final = 0.1
MEASURED_S: Final = 2.5
BATCH: Final = 50
_ORDER: Final = {"order_id": "o-123456", "customer": "c-42", "amount": 12.5, "items": list(range(20)), "card": "4" * 16}


def loops_per_s(for_s: float) -> float:
    """Return how many loops a second this process makes: Python objects and JSON, as the services' work is."""
    began_s, loops = time.monotonic(), 0
    while (passed_s := time.monotonic() - began_s) < for_s:
        for _ in range(BATCH):
            json.loads(json.dumps(_ORDER))
            sum(number * number for number in range(100))
        loops += BATCH
    return loops / passed_s


def measure_cores(for_s: float = MEASURED_S) -> float:
    """Return the loops a second of all cores at once, each with a process of its own."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    command = [sys.executable, "-m", "tailpack.first_run", str(for_s)]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE)) for _ in range(cores)]
        return sum(float(process.communicate()[0]) for process in running)


def carried_share(loops: float, peak: float) -> float:
    """Return the share of a load of `peak` orders/s that cores with so many loops a second carry; at most 1."""
    share = loops / LOOPS_PER_ORDER / peak
    return 1.0 if share >= 1 else max(LEAST, int(share * 20) / 20)


@contextlib.contextmanager
def paused(group: int | None) -> Iterator[None]:
    """Stop a process group until the block is left. None: nothing is to be stopped."""
    try:
        if group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGSTOP)
            os.sync()  # else its data would be flushed to the disk while the load is on
        yield
    finally:
        if group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGCONT)


def is_compiled() -> bool:
    """Whether this checkout, or this installation, has compiled code of an earlier process."""
    return any(Path(autoscaler.__file__).parent.glob("*/__pycache__/*.nbi"))


def compile_all() -> None:
    """Simulate some seconds of several scenarios, search an optimum, and rehearse the default policy."""
    from autoscaler.live.loop import warm_up_policy  # noqa: PLC0415  `is_compiled` needs none of them
    from autoscaler.policies.registry import make_policy, policy_names  # noqa: PLC0415
    from bench.scenario import load_scenario  # noqa: PLC0415
    from bench.simulation.optimum import find_optimum  # noqa: PLC0415
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    short = {"duration_s": 20}
    for policy in policy_names():
        for more in ({}, {"payment.rebalance_protocol": "share"}):
            try:
                scenario = load_scenario("w1", {**short, **more, "autoscaler.policy": policy})
                run_scenario(scenario, sent_by(scenario), keep_events=bool(more))
            except ValueError:
                continue  # a policy that needs an option, or the optimum, to be named
    scenario = load_scenario("w1", {**short, "autoscaler.policy": "clairvoyant"})
    sent = sent_by(scenario)
    find_optimum(scenario, sent)
    run_scenario(scenario, sent, keep_events=False)
    warm_up_policy(make_policy("tail-aware"), partitions=9, service_rate=50.0, interval_s=1.0)


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_all()
    else:
        print(loops_per_s(float(sys.argv[1])))  # noqa: T201
