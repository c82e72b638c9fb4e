"""Add an offset from a file to the wall clock. Python imports this module if its folder is on the path.

The environment variable TAILPACK_CHAOS_CLOCK names the file, which contains seconds. They are added to time.time and
time.time_ns, but not to monotonic clocks and not in the native code of librdkafka.
"""

import os
import time
from contextlib import suppress

_LOOK_S = 0.1
_real, _real_ns, _steady = time.time, time.time_ns, time.monotonic
_path = os.environ.get("TAILPACK_CHAOS_CLOCK", "")
_state = [0, float("-inf")]


def _added_s() -> int:
    if _steady() - _state[1] > _LOOK_S:
        _state[1] = _steady()
        with suppress(OSError, ValueError), open(_path, encoding="ascii") as file:
            _state[0] = int(file.read())  # empty while it is being written: as before
    return int(_state[0])


if _path:
    time.time = lambda: _real() + _added_s()
    time.time_ns = lambda: _real_ns() + _added_s() * 1_000_000_000
