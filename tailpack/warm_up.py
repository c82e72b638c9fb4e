"""`python -m tailpack.warm_up`: compile what policies and simulator need, so that no first run waits for it."""

from pathlib import Path
from typing import Final

import autoscaler

SECONDS: Final = 20
PARTITIONS: Final = 9


def is_compiled() -> bool:
    """Whether this checkout, or this installation, has compiled code of an earlier process."""
    return any(Path(autoscaler.__file__).parent.glob("*/__pycache__/*.nbi"))


def main() -> None:
    """Simulate some seconds of several scenarios, search an optimum, and rehearse the default policy."""
    from autoscaler.live.loop import rehearse  # noqa: PLC0415  `is_compiled` needs none of them
    from autoscaler.policies.registry import make_policy, policy_names  # noqa: PLC0415
    from bench.scenario import load_scenario  # noqa: PLC0415
    from bench.simulation.optimum import find_optimum  # noqa: PLC0415
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent import sent_by  # noqa: PLC0415

    short = {"duration_s": SECONDS}
    for policy in policy_names():
        for more in ({}, {"payment.delivery": "share"}):
            try:
                scenario = load_scenario("w1", {**short, **more, "autoscaler.policy": policy})
                run_scenario(scenario, sent_by(scenario), keep_events=bool(more))
            except ValueError:
                continue  # a policy that needs an option, or the optimum, to be named
    scenario = load_scenario("w1", {**short, "autoscaler.policy": "clairvoyant"})
    sent = sent_by(scenario)
    find_optimum(scenario, sent)
    run_scenario(scenario, sent, keep_events=False)
    rehearse(make_policy("tail-aware"), partitions=PARTITIONS, service_rate=50.0, interval_s=1.0, done=lambda: False)


if __name__ == "__main__":
    main()
