"""Who is compared: the twelve of the paper, and ours under several settings."""

from dataclasses import dataclass
from typing import Final

from autoscaler.packing import PACKERS, Packer

AS_THEY_COME: Final = ("nf", "ff", "bf", "wf")
EXISTING: Final = (*AS_THEY_COME, "nfd", "ffd", "bfd", "wfd")
MODIFIED: Final = ("mwf", "mbf", "mwfp", "mbfp")
THE_TWELVE: Final = (*EXISTING, *MODIFIED)
"""Every iteration's least number of consumers, which CBS refers to, is taken over these."""


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
    """Return the settings of keep-in-place, least consumers first, and Least-Loaded."""
    return (Contestant("keep_in_place", PACKERS["keep_in_place"]), Contestant("least_loaded", PACKERS["least_loaded"]))
