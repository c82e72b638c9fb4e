"""The late events that the promise allows: 1 − q of all. They may be spent, and are the dearer the fewer are left."""

from typing import Final

SCARCEST: Final = 4.0
"""A late event is never worth more than so many times its price: a budget that is overspent cannot be won back by
paying any price for the events that follow."""
CHEAPEST: Final = 0.5
"""Nor less than this: what of the budget is not spent is lost."""
LEAST_SHARE: Final = 1e-5
"""Of late events: a promise of 100 % is kept as one of 99.999 %."""
KEPT: Final = 0.9998
"""Of the account, from tick to tick: at one a second, the last hour and a half count."""


class Budget:
    """Account of late events over all events."""

    def __init__(self, percentile: float) -> None:
        self.allowed_share = max(LEAST_SHARE, 1 - percentile)
        self._late = 0.0
        self._events = 0.0

    def book(self, late: float, events: float) -> None:
        """Add what one interval brought."""
        self._late = self._late * KEPT + late
        self._events = self._events * KEPT + events

    def scarcity(self, more: float = 0.0) -> float:
        """Return what a late event is worth, in prices, once `more` of them have been spent.

        1 where that is half of what is allowed; it grows with the third power, between CHEAPEST and SCARCEST.
        """
        allowed = max(1.0, self.allowed_share * self._events)
        return float(min(SCARCEST, max(CHEAPEST, (2 * (self._late + more) / allowed) ** 3)))
