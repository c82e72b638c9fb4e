"""Short ways to say what happens in a scenario."""

from theory.rebalance.state import Scenario, mask

from contracts.plan import PlanRecord

NAMES = ("a", "b", "c")


def plans(*assignments: str | None) -> tuple[PlanRecord, ...]:
    """Return plans by epoch. "ab": partition 0 belongs to a, 1 to b; None: a and b, sticky by count."""
    return tuple(
        PlanRecord(
            epoch=epoch,
            at_us=0,
            replicas=tuple(sorted(set(owners or "ab"))),
            assignment=None if owners is None else dict(enumerate(owners)),
            reason="",
        )
        for epoch, owners in enumerate(assignments, start=1)
    )


def group(
    count: int, *assignments: str | None, started: int | None = None, names: tuple[str, ...] = NAMES, **may: int
) -> Scenario:
    """Return a scenario: `count` replicas, of which the first `started` have carried out the first plan."""
    here = count if started is None else started
    partitions = len(assignments[0] or assignments[-1] or "")
    return Scenario(names[:count], partitions, plans(*assignments), mask(range(here)), **may)
