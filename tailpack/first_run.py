"""Prepare the first run on a machine: compile code, and find a rate that the cores can serve.

`python -m tailpack.first_run compile` compiles. `python -m tailpack.first_run SECONDS` prints loops/s of one core.
"""

import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import autoscaler

LOOPS_PER_ORDER: Final = 1_200  # `dev bench stage demo --rate 98`: all cores / 98, × loops/s of an idle core; plus 25 %
"""CPU time per order of the demo, in loops, summed over all processes, plus a quarter, because 99.9 % of the events
are in time only if the cores are sometimes idle."""
MIN_LOAD_SHARE: Final = 0.1
MEASURED_S: Final = 2.5
LOOPS_PER_BATCH: Final = 50
_ORDER: Final = {"order_id": "o-123456", "customer": "c-42", "amount": 12.5, "items": list(range(20)), "card": "4" * 16}


def loops_per_s(duration_s: float) -> float:
    """Return loops/s of this process. A loop handles Python objects and JSON, as the services do."""
    began_s, loops = time.monotonic(), 0
    while (passed_s := time.monotonic() - began_s) < duration_s:
        for _ in range(LOOPS_PER_BATCH):
            json.loads(json.dumps(_ORDER))
            sum(number * number for number in range(100))
        loops += LOOPS_PER_BATCH
    return loops / passed_s


def measure_cores(duration_s: float = MEASURED_S) -> float:
    """Return loops/s of all cores together, measured with one process per core."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    command = [sys.executable, "-m", "tailpack.first_run", str(duration_s)]
    with contextlib.ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(command, stdout=subprocess.PIPE)) for _ in range(cores)]
        return sum(float(process.communicate()[0]) for process in running)


def sustainable_share(loops: float, peak: float) -> float:
    """Return the share (0.1 to 1) of a load that the cores can serve. loops: loops/s. peak: highest rate, orders/s."""
    return min(1.0, max(MIN_LOAD_SHARE, int(loops / LOOPS_PER_ORDER / peak * 20) / 20))


def is_compiled() -> bool:
    """Return whether an earlier process stored compiled code in this checkout or installation."""
    return any(Path(autoscaler.__file__).parent.glob("*/__pycache__/*.nbi"))


def compile_all() -> None:
    """Compile all code: simulate with every policy, compute an optimum, and warm up the default policy."""
    from autoscaler.live.loop import warm_up_policy  # noqa: PLC0415  `is_compiled` needs none of them
    from autoscaler.policies.registry import make_policy, policy_names  # noqa: PLC0415
    from bench.scenario import load_scenario  # noqa: PLC0415
    from bench.simulation.optimum import find_optimum  # noqa: PLC0415
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent_events import build_events  # noqa: PLC0415

    short = {"duration_s": 20}
    for policy in policy_names():
        for more in ({}, {"payment.rebalance_protocol": "share"}):
            try:
                scenario = load_scenario("w1", {**short, **more, "autoscaler.policy": policy})
                run_scenario(scenario, build_events(scenario), keep_events=bool(more))
            except ValueError:
                continue  # the policy requires an option or the optimum
    scenario = load_scenario("w1", {**short, "autoscaler.policy": "clairvoyant"})
    sent = build_events(scenario)
    find_optimum(scenario, sent)
    run_scenario(scenario, sent, keep_events=False)
    warm_up_policy(make_policy("tail-aware"), 9, 1.0)


if __name__ == "__main__":
    if sys.argv[1] == "compile":
        compile_all()
    else:
        print(loops_per_s(float(sys.argv[1])))  # noqa: T201
