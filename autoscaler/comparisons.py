"""Comparisons of plans as texts in the journal, so that they can be repeated later, also for other counts."""

import zlib
from base64 import b64decode, b64encode
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.policies.tail_aware.plans import Comparison, Situation

MAX_CHARS: Final = 300_000
"""Longest text. A larger comparison is not kept."""
MAX_BYTES: Final = 4_000_000  # unpacked


def encode(comparison: object) -> str:
    """Return the text; empty without a comparison, or if it would be longer than MAX_CHARS."""
    if not isinstance(comparison, Comparison) or comparison.now.paths.events.nbytes > MAX_BYTES // 2:
        return ""
    text = b64encode(zlib.compress(msgspec.msgpack.encode(comparison, enc_hook=_pack))).decode()
    return text if len(text) <= MAX_CHARS else ""


def decode(text: str) -> Comparison:
    """Return the comparison. Raises ValueError if the text is damaged, or from another version."""
    try:
        data = zlib.decompressobj().decompress(b64decode(text), MAX_BYTES)
        found = msgspec.msgpack.decode(data, type=Comparison, dec_hook=_unpack)
        _check(found.now)
    except (zlib.error, msgspec.DecodeError, TypeError, ValueError) as error:
        raise ValueError(
            f"the comparison in the journal cannot be repeated ({error}); is it of another version?"
        ) from error
    return found


def _check(now: Situation) -> None:
    """Raise ValueError if sizes or numbers do not fit together: machine code does not check them."""
    group, events, count, replicas = now.group, now.paths.events, len(now.group.owners), len(now.group.rates)
    numbers = np.concatenate((group.owners, group.serving, [-1, group.present + count - 1]))
    lengths = {len(each) for each in (group.serving, group.in_handover_s, now.paths.sizes)}
    shapes = (now.waiting.shape[1:], events.shape[2:], len(now.paths.weights), len(group.starting_s))
    if lengths != {count} or shapes != ((count,), (count,), len(events), replicas):
        raise ValueError("its sizes differ")
    if not (count and group.present >= 0 and numbers.min() == -1 and numbers.max() < replicas):
        raise ValueError("it has unknown replicas")


def _pack(array: Any) -> Any:
    return array.dtype.str, array.shape, array.tobytes()


def _unpack(kind: Any, packed: Any) -> Any:
    dtype, shape, data = packed
    return np.frombuffer(data, dtype).reshape(shape).astype(kind.__args__[1].__args__[0])  # a copy that can be changed
