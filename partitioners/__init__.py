"""Partitioners: rules that choose an event's partition from its key and the source's own counts.

Definitions: Nasir et al., "Load Balancing for Skewed Streams on Heterogeneous Clusters", 2017. `sticky_split` is ours.
"""

from enum import StrEnum


class Partitioner(StrEnum):
    """The rule that chooses the payment partition of an event. See docs/explanation/partitioners-and-order.md."""

    EXPLICIT = "explicit"
    KG = "kg"
    PKG = "pkg"
    POTC = "potc"
    PORC = "porc"
    CH = "ch"
    SG = "sg"
    CG = "cg"
    STICKY_SPLIT = "sticky_split"

    @property
    def keeps_key_order(self) -> bool:
        """Whether all events of a key go to one partition and so stay in order. False if unknown, as for `explicit`."""
        return self is Partitioner.KG


def splits_keys(needs_order: bool, partitioner: Partitioner) -> str | None:
    """Return a message if a stage needs the events of a key in order and the partitioner splits keys, else None."""
    if not needs_order or partitioner.keeps_key_order:
        return None
    return f"'{partitioner}' does not keep the order of a key, which Payment needs; use 'kg', or set key_order to false"
