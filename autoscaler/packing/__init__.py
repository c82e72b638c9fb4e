"""Partitions with loads into replicas with capacities."""

from autoscaler.packing.any_fit import AnyFit
from autoscaler.packing.balanced import balanced
from autoscaler.packing.keep_in_place import KeepInPlace
from autoscaler.packing.modified_any_fit import ModifiedAnyFit
from autoscaler.packing.one_dimension import Packer
from autoscaler.packing.open_consumers import BEST, FIRST, NEXT, WORST

__all__ = ["PACKERS", "Packer"]

PACKERS: dict[str, Packer] = {
    "nf": AnyFit(NEXT),
    "ff": AnyFit(FIRST),
    "bf": AnyFit(BEST),
    "wf": AnyFit(WORST),
    "nfd": AnyFit(NEXT, decreasing=True),
    "ffd": AnyFit(FIRST, decreasing=True),
    "bfd": AnyFit(BEST, decreasing=True),
    "wfd": AnyFit(WORST, decreasing=True),
    "mwf": ModifiedAnyFit(WORST),
    "mbf": ModifiedAnyFit(BEST),
    "mwfp": ModifiedAnyFit(WORST, by_largest=True),
    "mbfp": ModifiedAnyFit(BEST, by_largest=True),
    "keep_in_place": KeepInPlace(),
    "least_loaded": balanced,
}
