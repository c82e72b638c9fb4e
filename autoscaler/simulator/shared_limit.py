"""Compiled loops of a shared limit: a minimum gap between the starts of two events at any replicas."""
# ruff: noqa: PLR0917  # compiled functions take numbers and arrays one by one, by position

from autoscaler.jit import compiled
from autoscaler.simulator.kernel import service_us
from autoscaler.simulator.rows import NONE, Rows


@compiled
def close_gate(service: Rows, at_us: int) -> None:
    """Under a shared limit, set the earliest time of the next start, after the start of an event at `at_us`."""
    stretch = min(at_us // service[0].each_us, len(service) - 1)
    service[0].open_us = at_us + service[stretch].gap_us


@compiled
def begin(events: Rows, base: int, replicas: Rows, service: Rows, now_us: int, until_us: int) -> None:
    """Under a shared limit, start the events that can start before `until_us`. Earlier arrivals must be assigned.

    The next event depends on all replicas, so outcomes are computed one by one, in order of time.
    """
    while True:
        open_us = max(service[0].open_us, now_us)
        event, owner, started_us = NONE, NONE, until_us
        for replica in range(len(replicas)):
            candidate = replicas[replica].waiting
            if candidate != NONE:
                ready_us = max(replicas[replica].free_us, events[candidate - base].intended_us, open_us)
                if ready_us < started_us or (ready_us == started_us and candidate < event):
                    event, owner, started_us = candidate, replica, ready_us
        if event == NONE:
            return
        row = event - base
        events[row].started_us = started_us
        events[row].done_us = started_us + service_us(service, events[row].demand_us, replicas, owner, started_us)
        replicas[owner].busy_us += events[row].done_us - max(replicas[owner].free_us, events[row].intended_us)
        replicas[owner].free_us = events[row].done_us
        replicas[owner].waiting = events[row].next
        close_gate(service, started_us)
