"""Measure the memory of all processes of a run, and how long all cores were busy."""

from collections.abc import Iterable
from typing import Final

import psutil

FULL_CPU_SHARE: Final = 0.95
"""The machine counts as saturated if all cores together are busy for more than this share of the time."""

MEMORY_EVERY_S: Final = 10.0  # a measurement of memory takes the kernel 3 ms a process


class ResourceMeter:
    """Sums up samples of memory: PSS on Linux, and unshared memory (USS) elsewhere."""

    def __init__(self) -> None:
        self.peak_mib = 0.0
        """Highest sum of a sample, MiB."""
        self.full_s = 0.0
        """Seconds in which all cores were busy with work of normal priority. A caller may reset it to 0."""
        self._cores: tuple[float, float] | None = None  # busy and idle seconds of all cores at the last sample
        self._last: dict[int, tuple[float, float]] = {}
        """Process → its memory in MiB, and when it was measured (seconds)."""

    def sample(self, pids: Iterable[int], now: float) -> float:
        """Measure processes at monotonic time `now`. Return their memory, MiB, without ended processes."""
        total = 0.0
        for pid in pids:
            try:
                process = psutil.Process(pid)
                mib, measured_s = self._last.get(pid, (0.0, now - MEMORY_EVERY_S))
                if now - measured_s >= MEMORY_EVERY_S:
                    memory, measured_s = process.memory_full_info(), now
                    mib = getattr(memory, "pss", memory.uss) / 2**20
            except psutil.Error:
                continue
            total += mib
            self._last[pid] = mib, measured_s
        self.peak_mib = max(self.peak_mib, total)
        self._measure_cores()
        return total

    def _measure_cores(self) -> None:
        times = psutil.cpu_times()
        idle_s = times.idle + sum(getattr(times, name, 0.0) for name in ("iowait", "nice"))  # niced work yields
        cores = (sum(times) - getattr(times, "guest", 0.0) - getattr(times, "guest_nice", 0.0) - idle_s, idle_s)
        if self._cores is not None:
            busy_s, idle_s = (now - before for now, before in zip(cores, self._cores, strict=True))
            if busy_s > FULL_CPU_SHARE * (busy_s + idle_s):
                self.full_s += (busy_s + idle_s) / (psutil.cpu_count() or 1)
        self._cores = cores
