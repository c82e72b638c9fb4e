"""Measure CPU and memory of every process of a run, and how long all cores were busy."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import psutil

FULL_CPU_SHARE: Final = 0.95
"""The machine counts as saturated if all cores together are busy for more than this share of the time."""

MEMORY_EVERY_S: Final = 10.0  # a measurement of memory takes the kernel 3 ms a process


class Usage(msgspec.Struct, kw_only=True):
    """CPU and memory of one process during a run. Memory is PSS on Linux, and unshared memory (USS) elsewhere."""

    name: str
    cpu_s: float = 0.0
    watched_s: float = 0.0
    peak_mib: float = 0.0

    @property
    def cores(self) -> float:
        """Mean number of busy cores while the process was observed."""
        return self.cpu_s / self.watched_s if self.watched_s else 0.0


class ResourceMeter:
    """Sums up samples of CPU and memory by process name. A restarted replica counts as the same process."""

    def __init__(self) -> None:
        self.usages: dict[str, Usage] = {}
        self.peak_mib = 0.0
        self.full_s = 0.0
        """Seconds in which all cores were busy with work of normal priority. A caller may reset it to 0."""
        self._cores: tuple[float, float] | None = None  # busy and idle seconds of all cores at the last sample
        self._last: dict[tuple[str, int], tuple[float, float, float, float]] = {}
        """Process → its CPU time and when it was read, its memory in MiB and when it was measured (seconds)."""

    def sample(self, processes: Mapping[str, int], now: float) -> float:
        """Measure processes (name → pid) at monotonic time `now`. Return their memory, MiB, without ended processes."""
        total = 0.0
        for name, pid in processes.items():
            before = self._last.get((name, pid))
            try:
                process = psutil.Process(pid)
                cpu_s = sum(process.cpu_times()[:2])
                mib, measured_s = before[2:] if before else (0.0, now - MEMORY_EVERY_S)
                if now - measured_s >= MEMORY_EVERY_S:
                    memory, measured_s = process.memory_full_info(), now
                    mib = getattr(memory, "pss", memory.uss) / 2**20
            except psutil.Error:
                continue
            total += mib
            usage = self.usages.setdefault(name, Usage(name=name))
            usage.peak_mib = max(usage.peak_mib, mib)
            if before:
                usage.cpu_s += cpu_s - before[0]
                usage.watched_s += now - before[1]
            self._last[name, pid] = (cpu_s, now, mib, measured_s)
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

    def save(self, path: Path) -> None:
        """Write the usages as JSON. The process with the most CPU time comes first."""
        rows = sorted(self.usages.values(), key=lambda usage: -usage.cpu_s)
        path.write_bytes(msgspec.json.format(msgspec.json.encode(rows), indent=2))
