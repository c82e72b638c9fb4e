"""Classes of replicas: how fast each is and what it costs. The name of a replica says which class it has."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_CLASS: Final = re.compile(r"([a-z][a-z0-9]{0,19}) (\d{1,6}(?:\.\d{1,6})?) (\d{1,6}(?:\.\d{1,6})?)")
EXAMPLE: Final = "'small 1 1, large 2.5 2.2': a large one serves 2.5 times as much and costs 2.2 times as much"


@dataclass(frozen=True, slots=True)
class ReplicaClass:
    """One kind of machine or pod."""

    name: str
    speed: float
    """How many times as much it serves as one that takes the service time itself."""
    price: float
    """Of a minute, in any unit."""


ALIKE: Final = (ReplicaClass("", 1.0, 1.0),)
"""Where nobody tells replicas apart."""


def read_classes(text: str) -> tuple[ReplicaClass, ...]:
    """Read `NAME SPEED PRICE, NAME SPEED PRICE …`; of an empty text `ALIKE`. Raises ValueError."""
    found: dict[str, ReplicaClass] = {}
    for part in text.split(",") if text.strip() else ():
        match = _CLASS.fullmatch(" ".join(part.split()))
        if match is None:
            raise ValueError(f"{part.strip()!r} is no class of replicas; write for example {EXAMPLE}")
        one = ReplicaClass(match[1], float(match[2]), float(match[3]))
        if not (one.speed > 0 and one.price > 0):
            raise ValueError(f"{part.strip()!r}: speed and price must be above 0")
        if found.setdefault(one.name, one) is not one:
            raise ValueError(f"{one.name!r} stands there twice")
    return tuple(found.values()) or ALIKE


def class_of(replica: str, classes: Sequence[ReplicaClass]) -> ReplicaClass:
    """Return the class of `payment-large-3`, which is large; a name that says nothing has the first one."""
    before_ordinal = replica.rpartition("-")[0]
    return next((one for one in classes if one.name and before_ordinal.endswith(f"-{one.name}")), classes[0])
