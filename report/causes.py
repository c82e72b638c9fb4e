"""Define the causes of late events, and explain each late-event episode in one sentence with figures."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from report.history import Span
from report.queues import LOAD_WINDOW_S, SLOW_FACTOR
from report.terms import Terms
from report.wording import duration, moment, plural


class Cause(StrEnum):
    """Cause of a late event. The first cause in this order whose rule holds is chosen. The last rule always holds."""

    GENERATOR = "generator-late"
    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"
    REPLICA_DEAD = "replica-dead"
    GROUP_STOPPED = "group-stopped"
    HANDOVER = "handover"
    REPLICA_STARTING = "replica-starting"
    BURST = "burst"
    OVERLOADED = "overloaded"


MEANINGS: Final[dict[str, str]] = {
    Cause.GENERATOR: "The generator sent the event late. If it had been sent on schedule, it would have been in time.",
    Cause.UPSTREAM: "The event reached Payment too late, because the order service or the broker delayed it.",
    Cause.DOWNSTREAM: "Payment served events too slowly, because one of its dependencies was slow.",
    Cause.REPLICA_DEAD: "Its replica had died or was evicted, and its partition waited for a new owner.",
    Cause.GROUP_STOPPED: "The whole group stopped for a rebalance.",
    Cause.HANDOVER: "Its partition was being handed over from one replica to another.",
    Cause.REPLICA_STARTING: "A requested replica was not ready yet.",
    Cause.BURST: "More events arrived at once than its replica serves in time, but its average load was low enough.",
    Cause.OVERLOADED: "The load of its replica exceeded the capacity for longer than a burst lasts.",
}
"""Cause → its meaning, as shown on the page. A result of a later version may have causes that are not listed."""
LOST_SENTENCES: Final = {
    Cause.UPSTREAM: "The event was sent but never reached Payment's topic.",
    Cause.REPLICA_DEAD: "The event was in Payment's topic when a replica died, and no replica completed it.",
    Cause.OVERLOADED: "The event was in Payment's topic until the end of the run, and no replica completed it.",
}
IN_ORDER, OWN_SERVICE = "in Order", "own service"
SENTENCES: Final[dict[str, str]] = {
    Cause.GENERATOR: "the generator sent the worst event {sent_late} late",
    IN_ORDER: "Order accepted the worst event {sending} after it was placed",
    Cause.UPSTREAM: "{owner} was idle but received the worst event {transit} after {handed_on}",
    OWN_SERVICE: "the service of the worst event took {service} at {owner}; the median is {median}",
    Cause.DOWNSTREAM: "slowly served events at {owner} delayed the worst event by {slowed}; the median is {median}",
    Cause.REPLICA_DEAD: "{old} was gone and {owner} took over partition {partition}: {unserved}",
    Cause.GROUP_STOPPED: "no partition completed an event for {stop} before {start}, in epoch {epoch}",
    Cause.HANDOVER: "partition {partition} moved from {old} to {owner}: {unserved}",
    Cause.REPLICA_STARTING: "{starts}; {ahead}; {load}",
    Cause.BURST: "all events ahead of it had arrived within the last second; {ahead}; {load}",
    Cause.OVERLOADED: "{load}{since}; {ahead}",
}
"""Cause → template for `explain_episode`. IN_ORDER and OWN_SERVICE are variants of upstream and downstream."""


def cause_title(cause: str) -> str:
    """Return the display name of any cause: "replica-dead" becomes "Replica dead"."""
    return cause.replace("-", " ").capitalize()


def explain_episode(cause: Cause, worst: Mapping[str, Any], terms: Terms, starts: Iterable[Span]) -> str:
    """Return a sentence that shows by figures why the episode has this cause.

    worst: partition, replica and epoch of the episode, and WORST_EVENT_COLUMNS of its worst event; None: unknown.
    starts: spans from the request of a replica until it was ready.
    """
    if worst["latency_us"] is None:
        return LOST_SENTENCES.get(cause, "The event was never completed.")

    def at(time_us: int) -> str:
        return moment((time_us - terms.started_us) / 1e6)

    def between(begin: str, end: str) -> str:
        return _length(None if None in {worst[begin], worst[end]} else worst[end] - worst[begin])

    sentence, median_us = SENTENCES[cause], terms.typical.service_us
    if cause is Cause.UPSTREAM and (worst["accepted_us"] or 0) - (worst["placed_us"] or 0) > terms.target_us // 10:
        sentence = SENTENCES[IN_ORDER]
    elif cause is Cause.DOWNSTREAM and worst["service_us"] > SLOW_FACTOR * median_us:
        sentence = SENTENCES[OWN_SERVICE]
    owner = f"{worst['replica'] or 'no replica'} (epoch {'unknown' if worst['epoch'] is None else worst['epoch']})"
    waited_us = worst["start_us"] - worst["handed_us"]
    rate = f"a service rate (μ) of {1e6 / median_us:.0f} events/s" if median_us else "an unknown service rate (μ)"
    events = f", the time of {plural(waited_us // median_us, 'service')}" if median_us else ""
    load = "" if worst["load"] is None else f"{worst['load'] / LOAD_WINDOW_S:.0f} events/s over {LOAD_WINDOW_S} s at "
    since = "" if worst["since_us"] is None else f", never idle since {at(worst['since_us'])}"
    over = "" if worst["over_from"] is None else f", above its capacity since {moment(float(worst['over_from']))}"
    sent = "it was sent (in payment-only runs, this includes the wait for the next poll)"
    pending = [span for span in starts if span.from_us < worst["start_us"] and span.until_us > worst["handed_us"]]
    took = [(span.replica, at(span.from_us), _length(span.until_us - span.from_us)) for span in pending[:2]]
    facts = {
        "owner": owner,
        "sent_late": between("intended_us", "placed_us"),
        "sending": between("placed_us", "accepted_us"),
        "transit": between("handed_us", "received_us"),
        "handed_on": "Order had accepted it" if terms.pipeline else sent,
        "service": _length(worst["service_us"]),
        "slowed": _length(worst["slowed_us"]),
        "median": _length(median_us),
        "unserved": _unserved(worst, at),
        "stop": _length(worst["stop_us"]) if worst["stop_us"] else between("left_us", "came_us"),
        "start": at(worst["start_us"]),
        "starts": "; ".join(
            f"{replica} was requested at {when} and ready {later} later" for replica, when, later in took
        ),
        "ahead": f"the worst event waited {_length(waited_us)}{events}",
        "load": f"{load}{owner} against {rate}",
        "since": over or since,
    }
    text = sentence.format_map({**worst, **facts})
    return text[0].upper() + text[1:] + "."


def _unserved(worst: Mapping[str, Any], at: Callable[[int], str]) -> str:
    left_us, came_us = worst["left_us"], worst["came_us"]
    if left_us is None:
        return "no replica served it"
    from_us = max(left_us, min(worst["handed_us"], came_us))
    from_us = left_us if from_us == came_us else from_us  # the worst event arrived later, behind a backlog
    return f"no replica served it from {at(from_us)} to {at(came_us)} ({_length(came_us - from_us)})"


def _length(time_us: int | None) -> str:
    return duration(None if time_us is None else time_us / 1e6)
