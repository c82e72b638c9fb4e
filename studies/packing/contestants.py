"""Who is compared: the twelve of the paper, and ours under several settings."""

from dataclasses import dataclass
from typing import Final

from autoscaler.packing.keep_in_place import KeepInPlace
from autoscaler.packing.one_dimension import Packer
from autoscaler.packing.packers import PACKERS

AS_THEY_COME: Final = ("nf", "ff", "bf", "wf")
EXISTING: Final = (*AS_THEY_COME, "nfd", "ffd", "bfd", "wfd")
MODIFIED: Final = ("mwf", "mbf", "mwfp", "mbfp")
THE_TWELVE: Final = (*EXISTING, *MODIFIED)
"""Every iteration's least number of consumers, which CBS refers to, is taken over these."""
KEEP_IN_PLACE: Final = "keep_in_place"
CONSUMER_PRICES: Final = (0.1, 0.69, 1.0)
"""Rate that may move so that one consumer is saved, in capacities. The same for all streams: none is told its delta."""
LONG_SEARCH: Final = (0.75, 1000)
"""A price and so many trials, for what a longer search finds (name ends in long)."""
REPACKING_PRICES: Final = (2.7, 5.0, 1000.0)
"""Prices where everything may be packed anew (names end in r); the last is as good as no limit."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """A packer under a name."""

    name: str
    packer: Packer

    @property
    def takes_as_they_come(self) -> bool:
        """Tell whether it is shown the partitions in a fresh order each time, as the paper's online algorithms are."""
        return self.name in AS_THEY_COME


def the_twelve() -> tuple[Contestant, ...]:
    """Return eight any-fit and four modified any-fit heuristics."""
    return tuple(Contestant(name, PACKERS[name]) for name in THE_TWELVE)


def ours() -> tuple[Contestant, ...]:
    """Return keep-in-place as it is by default, then under settings from few moves to few consumers; Least-Loaded."""
    price, trials = LONG_SEARCH
    return (
        Contestant(KEEP_IN_PLACE, PACKERS[KEEP_IN_PLACE]),
        *(Contestant(f"{KEEP_IN_PLACE} {price:g}", KeepInPlace(consumer_price=price)) for price in CONSUMER_PRICES),
        Contestant(f"{KEEP_IN_PLACE} {price:g} long", KeepInPlace(consumer_price=price, trials=trials)),
        *(
            Contestant(f"{KEEP_IN_PLACE} {price:g}r", KeepInPlace(consumer_price=price, repacks=True))
            for price in REPACKING_PRICES
        ),
        Contestant("least_loaded", PACKERS["least_loaded"]),
    )


def everybody() -> tuple[Contestant, ...]:
    """Return all of them, those of the paper first."""
    return (*the_twelve(), *ours())
