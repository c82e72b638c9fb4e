"""Find the cause of each late event: the first cause, in the order of `Cause`, whose rule holds."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from report import table as cols
from report.causes import Cause, explain_episode
from report.history import Journal, Span, starting_spans
from report.queues import group_stops, late_events, overlap, owner_loads
from report.rebalances import Deaths, takeovers
from report.result import CauseOfLateness, LateEpisode, Tail
from report.seconds import EventCounts, in_seconds
from report.table import NONE, Groups, Ints, Mask, Rows, Table
from report.terms import SECOND_US, Terms, is_counted, with_partition

MAX_EPISODES: Final = 1_000
"""Maximum number of episodes in a report, which contains those with the most events."""
MAX_EPISODE_GAP_US: Final = 2 * SECOND_US
"""Two consecutive late events belong to different episodes if their scheduled times differ by more than this."""
WORST_EVENT_COLUMNS: Final = (
    "latency_us", "intended_us", "placed_us", "accepted_us", "handed_us", "received_us", "start_us", "service_us",
    "left_us", "came_us", "since_us", "slowed_us", "stop_us", "load", "over_from", "old",
)  # fmt: skip
"""Columns of the worst event of an episode, for `explain_episode`."""
EXPLAINED_COLUMNS: Final = ("partition", "replica", "epoch", "offset", "done_us", "cause", *WORST_EVENT_COLUMNS)
MAX_EXPLAINED: Final = 1_000_000
"""Maximum number of late events that get a cause. If there are more, they are sampled evenly over time."""
HANDED_OVER, DEAD = 1, 2  # kinds of takeover; 0: none


def explain(
    rows: Rows, owners: Table, arrived: Table, terms: Terms, journal: Journal, *, deaths: Deaths, totals: EventCounts
) -> Tail:
    """Return the causes of late events. owners: from `rebalances.stays`. arrived: from `seconds.owned_arrivals`."""
    number = totals.events - totals.in_sla
    if not number:
        return Tail(late=0, causes=(), episodes=())
    starts = starting_spans(journal.changes, terms.started_us + terms.shown_s * SECOND_US)
    moments = [entry.at_us for entry in journal.changes] + [plan.at_us for plan in journal.plans]
    step = max(1, -(-number // MAX_EXPLAINED))
    late = late_events(rows, owners, terms)
    late = late.where(np.lexsort([late["offset"], late["partition"], late["done_us"]])[::step])
    late = late.plus(takeover=_kinds(owners, deaths)[late["stay"]], **owner_loads(arrived, late, terms))
    stops = group_stops(rows, terms, moments) if moments else []
    found = assign_causes(late, terms, stops, starts).only(*EXPLAINED_COLUMNS)
    if totals.lost:
        died_us = max((at_us for times in deaths.times.values() for at_us in times), default=NONE)
        lost = rows.pieces(partial(lost_events, died_us=died_us, pipeline=terms.pipeline))
        found = cols.concat([found, *lost], *EXPLAINED_COLUMNS)
    largest, left_out = episodes(found, terms, starts)
    return Tail(
        late=number,
        explained=len(found["cause"]) if step > 1 else None,
        causes=_causes(found),
        episodes=largest,
        episodes_left_out=left_out,
        by_second=_by_second(found, terms),
    )


def _kinds(owners: Table, deaths: Deaths) -> Ints:
    kinds = np.zeros(int(owners["stay"].max(initial=-1)) + 2, np.int64)  # by stay; the last is for stay -1
    for takeover in takeovers(owners):
        if takeover.late:
            kinds[takeover.stay] = DEAD if deaths.caused_by_death(takeover) else HANDED_OVER
    return kinds


def assign_causes(late: Table, terms: Terms, stops: Sequence[tuple[int, int]], starts: Sequence[Span]) -> Table:
    """Return `late` with the columns cause, latency_us, slowed_us (delay by slow services) and stop_us.

    late: from `queues.late_events`, with the columns takeover (kind of the change of owner), load and over_from.
    stops: times (µs) in which the group served nothing. stop_us: how long such times delayed the event.
    starts: spans from the request of a replica until it was ready.
    """

    def in_time(done_us: Ints) -> Mask:
        return np.asarray((done_us != NONE) & (done_us - late["intended_us"] <= terms.target_us))

    unready = [(span.from_us, span.until_us) for span in starts]
    done_us, stop_us = late["done_us"], overlap(stops, late["since_us"], late["start_us"])
    late_by_us = np.maximum(cols.minus(late["placed_us"], late["intended_us"]), 0)
    sending_us = cols.minus(late["accepted_us"], late["placed_us"])
    sending_us = np.where(sending_us == NONE, 0, np.maximum(sending_us - terms.typical.sending_us, 0))
    unpaused, unstalled = in_time(late["unpaused_us"]), in_time(late["unstalled_us"])
    pause_us = cols.minus(late["came_us"], late["left_us"])
    in_stop = (pause_us != NONE) & (overlap(stops, late["left_us"], late["came_us"]) * 2 >= pause_us)
    dead, handover = ((late["takeover"] == kind) & unpaused for kind in (DEAD, HANDED_OVER))
    stopped = (unstalled & (stop_us > 0)) | (unpaused & in_stop)
    recent = late["since_us"] >= late["handed_us"] - max(SECOND_US, terms.target_us)  # not busy for longer than a burst
    rules = {
        Cause.GENERATOR: in_time(done_us - late_by_us),
        Cause.UPSTREAM: in_time(done_us - sending_us) | (unstalled & ~(dead | stopped | handover)),
        Cause.DOWNSTREAM: in_time(late["unslowed_us"]),
        Cause.REPLICA_DEAD: dead,
        Cause.GROUP_STOPPED: stopped,
        Cause.HANDOVER: handover,
        Cause.REPLICA_STARTING: overlap(unready, late["handed_us"], late["start_us"]) > 0,
        Cause.BURST: recent & (late["over_from"] == NONE),
        Cause.OVERLOADED: np.ones(len(done_us), np.bool_),
    }
    cause = np.argmax(np.stack([rules[cause] for cause in Cause]), axis=0)
    latency_us, slowed_us = (cols.minus(done_us, late[begin]) for begin in ("intended_us", "unslowed_us"))
    return late.plus(cause=cause, latency_us=latency_us, slowed_us=slowed_us, stop_us=stop_us)


def lost_events(events: Table, *, died_us: int, pipeline: bool) -> Table:
    """Return the events that were never completed, with their cause. died_us: last death of a replica; NONE: no death.

    The cause is upstream if the event never reached Payment's topic. Otherwise it is replica-dead if a replica died
    after the event was placed, else overloaded.
    """
    lost = with_partition(events.where((events["done_us"] == NONE) & is_counted(events)))
    reached = (lost["requested_records"] > 0) | (not pipeline)
    died = cols.coalesce(lost["placed_us"], lost["intended_us"]) <= died_us
    dead, overloaded, upstream = map(list(Cause).index, (Cause.REPLICA_DEAD, Cause.OVERLOADED, Cause.UPSTREAM))
    cause = np.where(reached, np.where(died, dead, overloaded), upstream)
    columns = dict.fromkeys(WORST_EVENT_COLUMNS, np.full(len(cause), NONE)) | {"cause": cause}
    columns["old"] = np.full(len(cause), -1)
    columns |= {name: lost[name] for name in ("intended_us", "placed_us", "accepted_us", "received_us")}
    return lost.plus(**columns).only(*EXPLAINED_COLUMNS)


def episodes(late: Table, terms: Terms, starts: Sequence[Span]) -> tuple[tuple[LateEpisode, ...], int]:
    """Return the largest late-event episodes, sorted by time, and the number of episodes that are left out."""
    late = late.where(np.lexsort([late[name] for name in ("done_us", "offset", "intended_us", "cause", "partition")]))
    apart = np.diff(late["intended_us"], prepend=late["intended_us"][:1]) > MAX_EPISODE_GAP_US
    number = np.cumsum(cols.group_begins(late["partition"], late["cause"], late["replica"], late["epoch"]) | apart)
    each = Groups(number)
    ranked = np.lexsort([*(late[name] for name in reversed(WORST_EVENT_COLUMNS)), number])
    first, worst = each.starts, ranked[each.starts + each.sizes - 1]
    begin_us, until_us = late["intended_us"][first], each.max(late["intended_us"])
    by_size = np.lexsort([late["cause"][first], late["partition"][first], begin_us, -each.sizes])
    found = []
    for row in by_size[:MAX_EPISODES].tolist():
        place = {name: int(late[name][first[row]]) for name in ("partition", "epoch")}
        position: dict[str, Any] = {name: None if value < 0 else value for name, value in place.items()}
        position["replica"] = late.name(late["replica"][first[row]])
        values = {name: int(late[name][worst[row]]) for name in WORST_EVENT_COLUMNS}
        figures = {name: None if value == NONE else value for name, value in values.items()}
        cause = list(Cause)[late["cause"][first[row]]]
        found.append(
            LateEpisode(
                cause=cause.value,
                **position,
                from_s=(int(begin_us[row]) - terms.started_us) / 1e6,
                until_s=(int(until_us[row]) - terms.started_us) / 1e6,
                events=int(each.sizes[row]),
                worst_s=in_seconds(values["latency_us"]),
                why=explain_episode(cause, {**figures, **position, "old": late.name(values["old"])}, terms, starts),
            )
        )
    found.sort(key=lambda each: (each.from_s, -1 if each.partition is None else each.partition, each.cause))
    return tuple(found), max(0, len(each.sizes) - MAX_EPISODES)


def _causes(late: Table) -> tuple[CauseOfLateness, ...]:
    each, total = Groups(late["cause"]), len(late["cause"])
    rows = zip(each.keys[0].tolist(), each.sizes.tolist(), each.max(late["latency_us"]).tolist(), strict=True)
    found = [
        CauseOfLateness(cause=list(Cause)[number].value, events=events, share=events / total, worst_s=in_seconds(us))
        for number, events, us in rows
    ]
    return tuple(sorted(found, key=lambda cause: (-cause.events, cause.cause)))


def _by_second(late: Table, terms: Terms) -> dict[str, tuple[int, ...]]:
    second = np.clip(terms.second(late["intended_us"]), 0, terms.shown_s - 1)
    by = [np.bincount(second[late["cause"] == number], minlength=terms.shown_s) for number in range(len(Cause))]
    return {cause.value: tuple(counts.tolist()) for cause, counts in zip(Cause, by, strict=True) if counts.any()}
