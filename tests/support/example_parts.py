"""Parts of the invented result that explain its late events. The replica that dies owns partitions 3 to 5."""

from typing import Final

import numpy as np

from report.causes import Cause
from report.result import (
    Breakdown,
    Breakdowns,
    CauseOfLateness,
    Cost,
    HeatMap,
    Integrity,
    LateEpisode,
    RebalanceRecord,
    Rebalances,
    Tail,
)

PARTITIONS: Final = 9
DIED_S: Final = 61.2
HEIRS: Final = {3: "payment-0", 4: "payment-2", 5: "payment-2"}
LATE: Final = (
    (60, Cause.REPLICA_DEAD, 3),
    (61, Cause.REPLICA_DEAD, 2),
    (62, Cause.OVERLOADED, 2),
    (56, Cause.HANDOVER, 1),
)
"""Triples of second, cause and number of late events."""


def tail(seconds: int) -> Tail:
    """Return the causes of eight late events."""
    by_second = {cause: [0] * seconds for _, cause, _ in LATE}
    for second, cause, events in LATE:
        by_second[cause][second] = events
    return Tail(
        late=8,
        causes=(
            CauseOfLateness(cause=Cause.REPLICA_DEAD, events=5, share=5 / 8, worst_s=0.71),
            CauseOfLateness(cause=Cause.OVERLOADED, events=2, share=2 / 8, worst_s=0.583),
            CauseOfLateness(cause=Cause.HANDOVER, events=1, share=1 / 8, worst_s=0.531),
        ),
        episodes=(
            _spell(
                Cause.HANDOVER, 7, (56.21, 56.21), 1, 0.531, replica="payment-2",
                why="Plan 56 moved partition 7 from payment-1 to payment-2; it paused for 480 ms.",
            ),
            _spell(
                Cause.REPLICA_DEAD, 3, (60.64, 61.31), 3, 0.71, replica="payment-0",
                why="payment-1 died at 1:01.2 (killed by signal 9); its partition stood still for 590 ms, until "
                "payment-0 began to serve it.",
            ),
            _spell(
                Cause.REPLICA_DEAD, 4, (61.02, 61.28), 2, 0.655, replica="payment-2",
                why="payment-1 died at 1:01.2 (killed by signal 9); its partition stood still for 540 ms, until "
                "payment-2 began to serve it.",
            ),
            _spell(
                Cause.OVERLOADED, 0, (62.11, 62.4), 2, 0.583, replica="payment-0",
                why="payment-0 was given 191 events/s and can do 178; it had been behind for 1.3 s.",
            ),
        ),
        by_second={cause: tuple(counts) for cause, counts in by_second.items()},
    )  # fmt: skip


def heat(seconds: int) -> HeatMap:
    """Return a heat map with cells of one second. The last seconds have no event."""
    chance = np.random.default_rng(11)
    worst = 0.02 + 0.03 * chance.random((PARTITIONS, seconds)) + 0.1 * (chance.random((PARTITIONS, seconds)) > 0.97)
    worst[:, 30:52] *= 2
    worst[3:6, 60:63] = [[0.71, 0.69, 0.3], [0.4, 0.655, 0.28], [0.49, 0.42, 0.2]]
    worst[0, 62], worst[7, 56] = 0.583, 0.531
    owners = [[_owner(partition, second) for second in range(seconds)] for partition in range(PARTITIONS)]
    return HeatMap(
        cell_s=1.0,
        partitions=tuple(range(PARTITIONS)),
        max_s=tuple((*map(float, row[:120]), *(None,) * (seconds - 120)) for row in worst),
        owners=tuple((*row[:120], *(None,) * (seconds - 120)) for row in owners),
    )


def breakdowns() -> Breakdowns:
    """Return events by partition, replica and plan."""
    return Breakdowns(
        partitions=tuple(
            _breakdown(str(partition), 1_138 if partition < 7 else 1_137, {0: 2, 3: 3, 4: 2, 7: 1}.get(partition, 0))
            for partition in range(PARTITIONS)
        ),
        replicas=(
            _breakdown("payment-0", 5_120, 5),
            _breakdown("payment-1", 2_070, 0),
            _breakdown("payment-2", 3_050, 3),
        ),
        epochs=(_breakdown("1", 3_400, 0), _breakdown("2", 4_200, 7), _breakdown("3", 2_640, 1)),
    )


def cost() -> Cost:
    """Return a cost of 3 replica-minutes. The per-second packing costs 2.3."""
    return Cost(
        requested_replica_minutes=3.0, ready_replica_minutes=2.87, packing_replica_minutes=2.31,
        over_packing=3.0 / 2.31 - 1, moved_partitions=16, rebalance_score=0.412,
        largest_up=1, largest_down=1,
    )  # fmt: skip


def rebalances() -> Rebalances:
    """Return forty rebalances by plan, and one after a death."""
    chance = np.random.default_rng(7)
    moved = chance.integers(1, 5, 40).tolist()
    pauses_s = chance.lognormal(np.log(0.02), 0.6, 40) * np.sqrt(moved)
    by_plan = [
        RebalanceRecord(
            at_s=3.0 * k, kind="plan", members=2 + k % 2, moved=moved[k], pause_s=round(pause_s, 6),
            plan_to_ready_s=round(pause_s + 0.03, 6),
        )
        for k, pause_s in enumerate(pauses_s.tolist())
    ]  # fmt: skip
    died = RebalanceRecord(at_s=61.79, kind="death", members=2, moved=3, pause_s=0.59, plan_to_ready_s=0.08)
    return Rebalances(rebalance_protocol="incremental", records=(*by_plan, died))


def integrity() -> Integrity:
    """Return a run whose only errors are duplicates, as at-least-once delivery causes them."""
    return Integrity(
        lost=0, duplicates=14, order_violations_partition=0, order_violations_key=0,
        clock_skew={"sending": 0, "queueing": 0, "serving": 0}, offset_gaps=0, future=0,
        suspect=("14 duplicate records",),
    )  # fmt: skip


def _owner(partition: int, second: int) -> str:
    if partition < 3 or second < 50 or 71 <= second < 110:
        return "payment-0"
    if 56 <= second < 66 or second >= 116:
        if partition >= 6:
            return "payment-2"
        return HEIRS[partition] if DIED_S <= second < 71 else "payment-1"
    return "payment-1" if second < DIED_S or second >= 110 else "payment-2"


def _spell(
    cause: Cause,
    partition: int,
    times_s: tuple[float, float],
    events: int,
    worst_s: float,
    *,
    replica: str,
    why: str,
    epoch: int = 56,
) -> LateEpisode:
    return LateEpisode(
        cause=cause, partition=partition, replica=replica, epoch=epoch, from_s=times_s[0],
        until_s=times_s[1], events=events, worst_s=worst_s, why=why,
    )  # fmt: skip


def _breakdown(name: str, events: int, late: int) -> Breakdown:
    return Breakdown(
        name=name, events=events, late=late, p50_s=0.0134, p99_s=0.0301 + 0.004 * late, p999_s=0.07 + 0.05 * late,
        max_s=0.12 + 0.08 * late if late else 0.091,
    )  # fmt: skip
