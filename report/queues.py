"""Late events with what the queues say that they stood in: of the replica that served them, and of their partition.

A replica serves one event at a time, so the events of a replica form a queue, and so do those of a partition. With
aᵢ the time from which event i could be served and sᵢ what its service takes, it is done at
Dᵢ = Sᵢ + max over j ≤ i of (aⱼ − Sⱼ₋₁), Sᵢ = s₁ + … + sᵢ (Lindley's recursion, unrolled). Put other aⱼ or sⱼ into it
and it says when the event would have been done.
"""

from functools import partial
from typing import Any, Final

import numpy as np

from report import table as cols
from report.seconds import SERVED
from report.table import NONE, Groups, Ints, Mask, Rows, Table
from report.terms import Terms, Usual, done, handed, in_line, ready

SLOW: Final = 3
"""Times the usual service; what takes longer counts as slow."""
PLACE: Final = ("done_us", "partition", "offset", "intended_us")
"""No two events differ in none of these."""
KNOWN: Final = (
    *PLACE, "placed_us", "accepted_us", "received_us", "replica", "epoch", "handed_us", "old", "left_us", "came_us",
)  # fmt: skip
FOUND: Final = ("start_us", "service_us", "unstalled_us", "unslowed_us", "since_us")
WINDOW_S: Final = 10
"""Seconds over which a replica's load is averaged: a burst is shorter."""


def waited(rows: Rows, stays: Table, terms: Terms, usual: Usual) -> Table:
    """Return the late events that were done, with what the queues of their replicas and of their partitions say.

    stays: of `takeovers.stays`. Added to what is known of an event, all in µs:
    start_us      service began: received, and the replica's event before it done
    service_us    from there until done
    unstalled_us  when it would have been done had its replica never been idle while it was there to be served;
    unslowed_us   … had no service been slow; unpaused_us: … had its partition changed hands in no time
    since_us      its replica has had something to do ever since
    """
    changed = stays.where(stays["left_us"] != NONE).only(*SERVED, "old", "left_us", "came_us")
    told: dict[str, Any] = {"stays": changed, "terms": terms, "usual": usual}
    late = cols.joined(rows.pieces(partial(_of_replicas, **told), by="replica"), *KNOWN, *FOUND)
    paused = cols.joined(rows.pieces(partial(_of_partitions, **told), by="partition"), *PLACE, "unstalled_us")
    there = cols.places([paused[name] for name in PLACE], [late[name] for name in PLACE])
    return late.plus(unpaused_us=cols.taken(paused["unstalled_us"], there))


def _of_replicas(events: Table, stays: Table, terms: Terms, usual: Usual) -> Table:
    rows = _with_hands(events, stays, terms)
    rows = rows.where(in_line(rows, rows["replica"]))
    here_us = np.where(_moved(rows), rows["came_us"], rows["handed_us"]) + usual.transit_us
    ready_us = ready(rows)
    found = _queued(rows, cols.begins(rows["replica"]), ready_us, np.minimum(here_us, ready_us), usual.service_us)
    return rows.plus(**found).where(terms.late(rows)).only(*KNOWN, *FOUND)


def _of_partitions(events: Table, stays: Table, terms: Terms, usual: Usual) -> Table:
    rows = _with_hands(events, stays, terms)
    rows = rows.where(in_line(rows, rows["partition"]))
    moved, handed_us = _moved(rows), rows["handed_us"]
    there_us = np.where(moved, np.minimum(rows["came_us"], rows["done_us"]), handed_us)
    sooner_us = np.where(moved, np.maximum(handed_us, rows["left_us"]), handed_us)
    found = _queued(rows, cols.begins(rows["partition"]), there_us, np.minimum(sooner_us, there_us), usual.service_us)
    return rows.plus(**found).where(terms.late(rows)).only(*PLACE, "unstalled_us")


def _with_hands(events: Table, stays: Table, terms: Terms) -> Table:
    """Return the done events with old, left_us, came_us: how their partition had come to its replica, where it had.

    stays: knows the name of every replica.
    """
    rows = placed(done(events))
    rows = rows.plus(
        replica=stays.numbers_of(rows, "replica"), second=terms.second(rows["done_us"]), handed_us=handed(rows)
    )
    found = cols.places([stays[key] for key in SERVED], [rows[key] for key in SERVED])
    hands = {name: cols.taken(stays[name], found) for name in ("left_us", "came_us")}
    return Table({**hands, "old": cols.taken(stays["old"], found, -1)}, stays.names, rows.__getitem__)


def placed(events: Table) -> Table:
    """Return the events; those of which nobody knows where they lay are in one partition of their own."""
    return events.plus(partition=np.maximum(events["partition"], -1))


def _moved(rows: Table) -> Mask:
    return np.asarray((rows["came_us"] != NONE) & (rows["handed_us"] < rows["came_us"]))


def _queued(rows: Table, first: Mask, ready_us: Ints, here_us: Ints, usual_us: int) -> dict[str, Ints]:
    """Return what the queues say of their events: the columns `FOUND`.

    rows: in the order in which each server did them; first: where a server's begin. ready_us: when an event could
    really be served; here_us: when it could have been. usual_us: what a service takes that is not slow; 0: unknown.
    """
    done_us = rows["done_us"]
    before_us = np.where(first, here_us, cols.before(done_us, first))
    start_us = np.minimum(np.maximum(ready_us, before_us), done_us)
    service_us = done_us - start_us
    kept_us = np.where(service_us > SLOW * usual_us, usual_us, service_us) if usual_us else service_us
    did_us = np.where(start_us > before_us, start_us, here_us)
    work_us, kept_work_us = cols.running_sum(service_us, first), cols.running_sum(kept_us, first)
    return {
        "start_us": start_us,
        "service_us": service_us,
        "unstalled_us": work_us + cols.running_max(here_us - work_us + service_us, first),
        "unslowed_us": kept_work_us + cols.running_max(did_us - kept_work_us + kept_us, first),
        "since_us": cols.running_max(np.where(here_us >= before_us, here_us, NONE), first),
    }


def owner_loads(arrived: Table, usual_us: int) -> Table:
    """Return replica, second, load, over_from: what its partitions got in the `WINDOW_S` seconds up to this one.

    load: events in the window, of the partitions whose events of this second it served. over_from: the second since
    which it has been more than it can serve (NONE: it is not). arrived: of `seconds.owned`.
    """
    each = arrived.where(arrived["owner"] >= 0)
    second, upto = each["second"], np.cumsum(each["events"])
    span = int(np.ptp(second)) + WINDOW_S + 1 if len(second) else 1
    place = each["partition"] * span + second
    window = upto - np.append(0, upto)[np.searchsorted(place, place - WINDOW_S, side="right")]
    groups = Groups(each["owner"], second)
    replica, second = groups.keys
    load = groups.sum(window)
    over = load * usual_us > WINDOW_S * 1_000_000
    fresh = cols.begins(replica, second - np.arange(len(second)), over)  # in a row seconds grow as rows do
    since = cols.running_max(np.where(over & fresh, second, NONE), cols.begins(replica))
    return Table(
        {"replica": replica, "second": second, "load": load, "over_from": np.where(over, since, NONE)}, arrived.names
    )
