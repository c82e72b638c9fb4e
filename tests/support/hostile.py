"""Create hostile records: real records with extreme values, or with damaged bytes."""

import copy
import json
import random
from collections.abc import Iterator
from typing import Any, Final

NUMBERS: Final = (0, -1, 1, 2**31, 2**53, 2**63, 2**64, -(2**63) - 1, 10**18, 10**40, 10**309, 10**400, -(10**400))
FRACTIONS: Final = (0.1, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"))
TEXTS: Final = (
    "",
    "\0",
    "\ud800",
    "payment-0",
    "../../../x",
    "a" * 65,
    "a" * 2000,
    "é" * 500,
    "\u202e<script>",
    "1e400",
)
OTHERS: Final = (
    None,
    True,
    [],
    {},
    [[]],
    {"": ""},
    {"0": "payment-0"},
    {"-1": "x"},
    {str(10**20): "x"},
    list(range(300)),
)
EXTREMES: Final[tuple[Any, ...]] = (*NUMBERS, *FRACTIONS, *TEXTS, *OTHERS)


def mutate(record: Any, chance: random.Random) -> Any:
    """Return a copy of JSON data in which one to six places have an extreme value, are missing or are new."""
    changed = copy.deepcopy(record)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        found = list(places(changed))
        if not found:
            return changed
        container, key = chance.choice(found)
        how = chance.random()
        if how < 0.8:
            container[key] = copy.deepcopy(chance.choice(EXTREMES))
        elif how < 0.9:
            del container[key]
        elif isinstance(container, dict):
            container[chance.choice(("x", "v", "", "kind", str(2**70)))] = copy.deepcopy(chance.choice(EXTREMES))
        else:
            container.append(copy.deepcopy(chance.choice(EXTREMES)))
    return changed


def encode(record: Any, chance: random.Random) -> bytes:
    """Return JSON data as bytes. One record in five is damaged: changed, cut off, not UTF-8, or nested too deeply."""
    data = bytearray(json.dumps(record, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass"))
    match chance.randrange(25):
        case 0 | 1 if data:
            for _ in range(chance.choice((1, 2, 8))):
                data[chance.randrange(len(data))] = chance.randrange(256)
        case 2:
            del data[chance.randrange(len(data) + 1) :]
        case 3:
            data = bytearray(data.replace(b'"', b'"\xff', 1))
        case 4:
            data = bytearray(b"[" * chance.choice((10, 1000, 100_000)))
    return bytes(data)


def places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield (container, key) of each value in JSON data."""
    pairs = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in list(pairs):
        yield node, key
        yield from places(value)
