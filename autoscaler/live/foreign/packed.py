"""The plan in the rack ids of planners. java/Plan.java describes the format, and reads it."""

import base64
import hashlib
import struct
import zlib
from binascii import Error as Base64Error
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from operator import itemgetter
from typing import Final

PREFIX: Final = "tailpack-plan:1:"
LONGEST: Final = 32_767
"""Longest string in a request, bytes. A broker closes the connection after a longer one."""
MOST_PARTS: Final = 4
KEY_SIZE: Final = 6
_TOPIC: Final = struct.Struct(">16sI")

Owners = Mapping[bytes, Sequence[bytes]]
"""Id of a topic → key of the owner of each partition; an empty key: no owner."""


def key_of(id_: str) -> bytes:
    """Return the key of a member. id_: its instance id, or its member id if it has none."""
    return hashlib.sha256(id_.encode()).digest()[:KEY_SIZE]


def pack(number: int, owners: Owners) -> str:
    """Return the rack id, 25 kB for 10,000 partitions of 1,000 members. number: the highest is in force."""
    keys = sorted({key for of in owners.values() for key in of if key})
    place = {key: at for at, key in enumerate(keys, start=1)} | {b"": 0}
    places = [place[key] for of in owners.values() for key in of]
    head = struct.pack(">H", len(keys)) + b"".join(keys) + struct.pack(">H", len(owners))
    head += b"".join(_TOPIC.pack(topic, len(of)) for topic, of in owners.items())
    packer = zlib.compressobj(9)
    packed = b""
    for part in (head, bytes(one >> 8 for one in places), bytes(one & 0xFF for one in places)):
        packed += packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)  # each part gets a code of its own
    return f"{PREFIX}{number}:{base64.b64encode(packed + packer.flush()).decode()}"


def split(number: int, owners: Owners) -> list[str]:
    """Return the rack ids of a plan: one, or several with a part of it each. Empty: MOST_PARTS do not suffice."""
    total = sum(map(len, owners.values()))
    for parts in range(1, MOST_PARTS + 1):
        size = -(-total // parts)
        racks = [pack(number, _part(owners, range(first, first + size))) for first in range(0, total, size)]
        if max(map(len, racks)) <= LONGEST:
            return racks
    return []


def _part(owners: Owners, kept: range) -> Owners:
    place = count()
    return {topic: [key if next(place) in kept else b"" for key in of] for topic, of in owners.items()}


def join(racks: Iterable[str]) -> tuple[int, dict[bytes, list[bytes]]]:
    """Return the number and the owners of the newest plan in these rack ids, see `unpack`."""
    newest, owners = -1, dict[bytes, list[bytes]]()
    for number, part in sorted(map(unpack, racks), key=itemgetter(0)):
        known, newest = (owners if number == newest else {}), number
        owners = {topic: [*map(max, of, known.get(topic, of))] for topic, of in part.items()}
    return newest, owners


def unpack(rack: str) -> tuple[int, dict[bytes, list[bytes]]]:
    """Return the number and the owners of a rack id; −1 and nothing if it has no readable plan."""
    number, colon, text = rack.removeprefix(PREFIX).partition(":")
    try:
        if not (rack.startswith(PREFIX) and colon):
            return -1, {}
        body = zlib.decompress(base64.b64decode(text, validate=True))
        at = 2 + KEY_SIZE * struct.unpack_from(">H", body)[0]
        keys = [b"", *(body[start : start + KEY_SIZE] for start in range(2, at, KEY_SIZE))]
        (topics,) = struct.unpack_from(">H", body, at)
        counts = [_TOPIC.unpack_from(body, at + 2 + of * _TOPIC.size) for of in range(topics)]
        high = at + 2 + topics * _TOPIC.size
        low = high + sum(count for _, count in counts)
        owners: dict[bytes, list[bytes]] = {}
        for topic, count in counts:
            pairs = zip(body[high : high + count], body[low : low + count], strict=True)
            owners[topic] = [keys[first << 8 | second] for first, second in pairs]
            high, low = high + count, low + count
        return int(number), owners
    except (ValueError, IndexError, struct.error, zlib.error, Base64Error):
        return -1, {}
