"""The exact packing, as an integer program solved by HiGHS: a yardstick, too slow to decide by every second.

min Σ g_j  subject to  Σ_j p_ij = 1,  Σ_i p_ij·λ_i ≤ g_j·rate_j,  Σ_i p_ij·lag_i ≤ g_j·lag_j,  p and g binary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array, hstack, kron, vstack

from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.least_loaded import least_loaded

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class ExactPacking:
    """The best packing found, and what is known about better ones."""

    bins: tuple[Bin, ...]
    least: int
    """No packing has fewer bins. Proved optimal where it equals len(bins)."""

    @property
    def gap(self) -> float:
        """(bins − least)/bins: 0 is optimal."""
        return (len(self.bins) - self.least) / len(self.bins) if self.bins else 0.0


def exact(
    items: Sequence[Item], capacity: Capacity, *, capacities: Sequence[Capacity] = (), time_limit_s: float = 10.0
) -> ExactPacking:
    """Pack `items` into the fewest bins, or say after `time_limit_s` how far from it the best packing may be.

    capacities: of bins that differ from `capacity`; they come first, and those beyond them are as `capacity`.
    An item bigger than a bin counts as exactly one full bin, as in Least-Loaded.
    """
    if not items:
        return ExactPacking((), 0)
    upper = least_loaded(items, capacity)
    sizes = [*capacities, *[capacity] * len(upper)]
    found = _solved(items, sizes, capacity, time_limit_s)
    if found is None or (not capacities and len(found.bins) > len(upper)):
        return ExactPacking(upper, 1 if found is None else found.least)
    return found


def _solved(
    items: Sequence[Item], bins: Sequence[Capacity], typical: Capacity, time_limit_s: float
) -> ExactPacking | None:
    """Return what the solver found; None where it ran out of time without any packing."""
    number, count = len(items), len(bins)
    whole = [typical.exceeded_by(item.arrival_rate, item.lag) for item in items]
    rows = []
    for item_sizes, bin_sizes, full in (
        ([item.arrival_rate for item in items], [one.arrival_rate for one in bins], typical.arrival_rate),
        ([item.lag for item in items], [one.lag for one in bins], typical.lag),
    ):
        if full == inf:
            continue
        taken = np.array([full if big else size for size, big in zip(item_sizes, whole, strict=True)]) / full
        rows.append(hstack([kron(np.eye(count), taken[None, :]), csr_array(-np.diag(np.array(bin_sizes) / full))]))
    once = hstack([kron(np.ones((1, count)), np.eye(number)), csr_array((number, count))])
    opened = np.eye(count)[:-1] - np.eye(count)[1:] if len(set(bins)) == 1 else np.zeros((0, count))
    constraints = [LinearConstraint(csr_array(once), 1, 1)]
    if rows:
        constraints.append(LinearConstraint(csr_array(vstack(rows)), -inf, ROUNDING))
    if len(opened):  # equal bins are opened in order: their permutations need not be searched
        constraints.append(LinearConstraint(csr_array(hstack([csr_array((count - 1, number * count)), opened])), 0, 1))
    cost = np.concatenate((np.zeros(number * count), np.ones(count)))
    found = milp(
        cost,
        constraints=constraints,
        integrality=np.ones_like(cost),
        bounds=Bounds(0, 1),
        options={"time_limit": time_limit_s},
    )
    if found.x is None:
        return None
    placed = np.rint(found.x[: number * count]).reshape(count, number).astype(bool)
    packed = tuple(Bin(tuple(items[i] for i in np.flatnonzero(row).tolist())) for row in placed if row.any())
    proved = found.mip_dual_bound if found.mip_dual_bound is not None else 1.0
    return ExactPacking(packed, max(1, min(len(packed), int(np.ceil(proved - 1e-6)))))
