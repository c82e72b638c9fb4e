"""How long one decision takes, and how that grows with the partitions: `python tests/benchmarks/decision_speed.py`."""

import random
import statistics
import sys
import time

from autoscaler.model import GroupObservation, PartitionLoad, Replica
from autoscaler.policies.registry import make_policy
from autoscaler.policies.settings import GuardSettings

REPEATS = 30


def observation(partitions: int, *, packed: bool) -> GroupObservation:
    """Skewed loads on half as many replicas; packed: placed by Algorithm 2 itself, so that it holds."""
    chance = random.Random(partitions)
    loads = tuple(
        PartitionLoad(p, chance.expovariate(1 / 40), int(chance.expovariate(1 / 20))) for p in range(partitions)
    )
    names = [f"payment-{i}" for i in range(partitions // 2)]
    owners = {p: chance.choice(names) for p in range(partitions)}
    known = GroupObservation(0.0, loads, tuple(Replica(name, True) for name in names), owners, 200.0, 0.05)
    if not packed:
        return known
    plan = make_policy("algorithm-2").decide(known).plan
    return GroupObservation(
        0.0, loads, tuple(Replica(n, True) for n in plan.replicas), plan.assignment or {}, 200.0, 0.05
    )


def milliseconds(known: GroupObservation) -> tuple[float, str]:
    """Return the median time of a decision and its action."""
    policy = make_policy("algorithm-2", guards=GuardSettings())
    times = []
    for _ in range(REPEATS):
        begun = time.perf_counter()
        decision = policy.decide(known)
        times.append((time.perf_counter() - begun) * 1000)
    return statistics.median(times), decision.action.value


def main() -> None:
    """Print one line for each size."""
    base: dict[bool, float] = {}
    for partitions in (10, 100, 1000):
        for packed in (True, False):
            taken, action = milliseconds(observation(partitions, packed=packed))
            ratio = taken / base.setdefault(packed, taken)
            sys.stdout.write(f"{partitions:5} partitions  {action:8}  {taken:8.2f} ms  × {ratio:.1f}\n")


if __name__ == "__main__":
    main()
