"""Python imports this at its start where the folder is on its path: the wall clock then runs as a file says.

The file named by TAILPACK_CHAOS_CLOCK holds the seconds that are added. time.time and time.time_ns follow it, and so
do the timestamps of Python code. Monotonic clocks and the native code of librdkafka do not.
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
