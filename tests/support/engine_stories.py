"""Events and scenarios that are run through both engines of the simulator."""

from typing import Final

import numpy as np

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.engine import NO_OWNER

US: Final = 1e-6
PARTITIONS: Final = 4
REPLICAS: Final = 3


def arrivals(*events):
    """Events as (intended_us, partition)."""
    return Arrivals(
        np.array([intended_us for intended_us, _ in events], np.int64),
        np.array([partition for _, partition in events], np.int32),
    )


def outcome(engine):
    """Return (started, done, replica) of the events that `take` returns."""
    served = engine.take()
    return list(zip(served.started_us.tolist(), served.done_us.tolist(), served.replica.tolist(), strict=True))


class Story:
    """Runs steps (method, arguments, …) on an engine. `answers` has all results."""

    def __init__(self, engine):
        self.engine = engine
        self.living = [engine.add_replica() for _ in range(REPLICAS)]
        self.answers = []
        self.newest_us = 0

    def feed(self, gaps_and_partitions):
        gaps, partitions = zip(*gaps_and_partitions, strict=True)
        times_us = max(self.newest_us, self.engine.now_us) + np.cumsum(gaps, dtype=np.int64)
        self.newest_us = int(times_us[-1])
        self.engine.feed(Arrivals(times_us, np.array(partitions, np.int32)))

    def advance(self, duration_us):
        self.engine.advance(self.engine.now_us + duration_us)

    def attach(self, partition, which):
        self.engine.attach(partition, self.living[which % len(self.living)])

    def detach(self, partition):
        self.engine.detach(partition)

    def replace(self, which):
        killed = self.living.pop(which % len(self.living))
        self.engine.kill(killed)
        self.living.append(self.engine.add_replica())

    def ask(self):
        in_service = [self.engine.in_service_until_us(partition) for partition in range(PARTITIONS)]
        self.answers += [in_service, self.engine.produced().tolist(), self.engine.committed().tolist()]
        self.answers.append(self.engine.busy_us())

    def take(self):
        self.answers += outcome(self.engine)

    def end(self):
        for partition in range(PARTITIONS):
            if self.engine.owner(partition) == NO_OWNER:
                self.attach(partition, partition)
        self.drain()

    def drain(self):
        self.answers.append(self.engine.drain())
        self.ask()
        self.take()

    def tell(self, steps):
        for name, *arguments in steps:
            getattr(self, name)(*arguments)
        self.end()
        return self.answers
