"""Virtual time and processes. Each process is an event loop, stepped one callback at a time.

A process can be stopped, continued or killed between any two callbacks. Messages that arrive while it is stopped wait
in its mailbox, like bytes in a socket, and are read before its timers, as asyncio does.
"""

import asyncio
import heapq
import itertools
import random
import threading
import time
import zlib
from asyncio import events
from collections import deque
from collections.abc import Callable
from typing import Any, Final

STEP_S: Final = 5e-6
"""Duration of one callback."""
MAX_STEPS: Final = 3_000_000
EPOCH_S: Final = 1_800_000_000.0
BEGIN_S: Final = 100.0

Call = Callable[..., object]


class Process(asyncio.BaseEventLoop):
    """An event loop in virtual time, run by the simulation."""

    def __init__(self, sim: "Simulation", name: str) -> None:
        super().__init__()
        self.sim = sim
        self.name = name
        self.is_dead = False
        self.frozen_until_s = 0.0
        self._mailbox: deque[tuple[Call, tuple[Any, ...]]] = deque()
        self._turn = 0
        sim.processes.append(self)

    def time(self) -> float:
        """Return the virtual time."""
        return self.sim.now_s

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Ignore the error; the checks find relevant ones."""

    def deliver(self, call: Call, *arguments: object) -> None:
        """Put a message into the mailbox."""
        self._mailbox.append((call, arguments))

    def next_wake_s(self) -> float:
        """Return the time at which it can run next."""
        if self._ready or self._mailbox:
            return self.frozen_until_s
        return max(self._scheduled[0].when(), self.frozen_until_s) if self._scheduled else float("inf")

    def run_turn(self) -> int:
        """Run the callbacks of one iteration until an event of the simulation is due; return their number."""
        ready, timers, sim = self._ready, self._scheduled, self.sim
        if not self._turn:  # a new iteration: messages first, then timers
            while self._mailbox:
                call, arguments = self._mailbox.popleft()
                self.call_soon(call, *arguments)
            while timers and timers[0].when() <= sim.now_s:
                ready.append(heapq.heappop(timers))
            self._turn = len(ready)
        count = 0
        while self._turn and not (sim.due and sim.due[0][0] <= sim.now_s):
            self._turn -= 1
            count += 1
            sim.now_s += STEP_S
            self._call_next()
        return count

    def _call_next(self) -> None:
        handle = self._ready.popleft()
        self._thread_id = threading.get_ident()  # "is running"
        events._set_running_loop(self)
        try:
            if not handle._cancelled:
                handle._run()
        finally:
            self._thread_id = None
            events._set_running_loop(None)

    def terminate_tasks(self) -> None:
        """Cancel all tasks, without effects outside the process."""
        self.is_dead = True
        for _ in range(100):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            while self._ready:
                self._call_next()
            self.sim.now_s += 1.0
        self.close()


class Simulation:
    """Runs processes and scheduled events in an order given by the seed. Inside its context, time is virtual."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now_s = BEGIN_S
        self.wall_s = EPOCH_S
        """Wall clock minus virtual time (s); may be changed."""
        self.random = random.Random(seed)
        self.processes: list[Process] = []
        self.due: list[tuple[float, int, Call, tuple[Any, ...]]] = []
        self._numbers = itertools.count()
        self._counts: dict[str, int] = {}
        self.steps = 0
        self.violation: Exception | None = None
        """The error that ends the run."""

    def __enter__(self) -> "Simulation":
        clocks: dict[str, Call] = {
            "monotonic": lambda: self.now_s,
            "perf_counter": lambda: self.now_s,
            "clock_gettime": lambda clock: self.now_s,
            "time": lambda: self.wall_s + self.now_s,
            "time_ns": lambda: int((self.wall_s + self.now_s) * 1e9),
        }
        self._real = {name: getattr(time, name) for name in clocks}
        for name, clock in clocks.items():
            setattr(time, name, clock)
        self._chance = random.getstate()
        random.seed(self.seed)
        return self

    def __exit__(self, *_: object) -> None:
        after_s = self.now_s
        for process in self.processes:
            if not process.is_closed():
                process.terminate_tasks()
        self.now_s = after_s
        for name, clock in self._real.items():
            setattr(time, name, clock)
        random.setstate(self._chance)

    def at(self, when_s: float, call: Call, *arguments: object) -> None:
        """Schedule a call at a time."""
        heapq.heappush(self.due, (when_s, next(self._numbers), call, arguments))

    def jitter(self, name: str) -> float:
        """Return the next number in [0, 1) of the sequence `name`. An extra message affects only its own sequence."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return zlib.crc32(b"%d %s %d" % (self.seed, name.encode(), count)) / 2**32

    def run(self, until_s: float, done: Callable[[], bool] = lambda: False) -> bool:
        """Run until a time, or until `done` is true; return whether it is."""
        look_s = self.now_s
        while True:
            while self.due and self.due[0][0] <= self.now_s:
                _, _, call, arguments = heapq.heappop(self.due)
                call(*arguments)
                if self.violation:
                    raise self.violation
            wakes = [(process.next_wake_s(), process) for process in self.processes if not process.is_dead]
            runnable = [process for next_wake_s, process in wakes if next_wake_s <= self.now_s]
            if runnable:
                one = runnable[0] if len(runnable) == 1 else self.random.choice(runnable)
                self.steps += one.run_turn()
                if self.violation:
                    raise self.violation
                if self.steps > MAX_STEPS:
                    raise RuntimeError("the processes are busy without end")
                continue
            if self.now_s >= look_s:
                if done():
                    return True
                look_s = self.now_s + 0.1
            next_s = min([self.due[0][0] if self.due else float("inf"), *(next_wake_s for next_wake_s, _ in wakes)])
            if next_s > until_s:
                self.now_s = until_s
                return done()
            self.now_s = max(self.now_s, next_s)
