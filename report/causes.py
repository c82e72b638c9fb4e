"""The causes of lateness in words: what each means, and a sentence with figures for each episode of late events."""

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from report.history import Span
from report.queues import SLOW, WINDOW_S
from report.terms import Terms
from report.wording import duration, moment, several


class Cause(StrEnum):
    """Why an event can be late, in the order in which it is asked: the first that holds is the cause; the last does."""

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
    Cause.GENERATOR: "The generator sent it late; sent when intended, it would have been in time.",
    Cause.UPSTREAM: "It was on its way to Payment for too long: in the order service, or in the broker.",
    Cause.DOWNSTREAM: "Its own service took too long: whatever Payment calls was slow.",
    Cause.REPLICA_DEAD: "Its replica had died or was evicted, and its partition waited for a successor.",
    Cause.GROUP_STOPPED: "The whole group stood still for a rebalance.",
    Cause.HANDOVER: "Its partition was on its way from one replica to another.",
    Cause.REPLICA_STARTING: "A replica that had been asked for was not ready yet.",
    Cause.BURST: "More arrived at once than its replica serves within the target, though on average it keeps up.",
    Cause.OVERLOADED: "Its replica had more to do than it can do, for longer than a burst lasts.",
}
"""Cause → one sentence for the page; a later version may have causes that this one does not know."""
NEVER_DONE: Final = {
    Cause.UPSTREAM: "It was sent and never reached Payment's topic.",
    Cause.REPLICA_DEAD: "It lay in Payment's topic when a replica died, and nobody ever finished it.",
    Cause.OVERLOADED: "It lay in Payment's topic until the end of the run, and nobody ever finished it.",
}
IN_ORDER, OWN_SERVICE = "in Order", "own service"
SENTENCES: Final[dict[str, str]] = {
    Cause.GENERATOR: "the generator sent the worst {sent_late} late",
    IN_ORDER: "Order accepted the worst {sending} after it was placed",
    Cause.UPSTREAM: "{replica} had nothing else to do, yet received the worst {transit} after {handed_on}",
    OWN_SERVICE: "the service of the worst took {service} at {owner}, usual are {usual}",
    Cause.DOWNSTREAM: "services before the worst were slow at {owner} and cost it {slowed}; usual are {usual} each",
    Cause.REPLICA_DEAD: "{old} was gone, {owner} took over partition {partition}: {unserved}",
    Cause.GROUP_STOPPED: "no partition finished anything for {stop} before {start}, under epoch {epoch}",
    Cause.HANDOVER: "partition {partition} went from {old} to {owner}: {unserved}",
    Cause.REPLICA_STARTING: "{starts}; {ahead}; {load}",
    Cause.BURST: "all that lay ahead had arrived within the last second; {ahead}; {load}",
    Cause.OVERLOADED: "{load}{since}; {ahead}",
}
"""Cause → what `why` says of an episode; upstream and downstream have two."""


def cause_title(cause: str) -> str:
    """Return the cause's name as a reader wants it: "replica-dead" is "Replica dead"; unknown ones alike."""
    return cause.replace("-", " ").capitalize()


def why(cause: Cause, worst: Mapping[str, Any], terms: Terms, starts: Iterable[Span]) -> str:
    """Return one sentence with the figures that show an episode's cause.

    worst: of an episode (partition, replica, epoch) and of its worst event, µs; None where not known. starts: from when
    a replica was requested until it was ready.
    """
    if worst["latency_us"] is None:
        return NEVER_DONE.get(cause, "Never done.")

    def at(time_us: int) -> str:
        return moment((time_us - terms.started_us) / 1e6)

    def between(begin: str, end: str) -> str:
        return _length(None if None in {worst[begin], worst[end]} else worst[end] - worst[begin])

    sentence, usual_us = SENTENCES[cause], terms.usual.service_us
    if cause is Cause.UPSTREAM and (worst["accepted_us"] or 0) - (worst["placed_us"] or 0) > terms.target_us // 10:
        sentence = SENTENCES[IN_ORDER]
    elif cause is Cause.DOWNSTREAM and worst["service_us"] > SLOW * usual_us:
        sentence = SENTENCES[OWN_SERVICE]
    owner = f"{worst['replica'] or 'nobody'} (epoch {'unknown' if worst['epoch'] is None else worst['epoch']})"
    waited_us = worst["start_us"] - worst["handed_us"]
    rate = f"μ = {1e6 / usual_us:.0f} events/s" if usual_us else "an unknown μ"
    events = f", the time of {several(waited_us // usual_us, 'event')}" if usual_us else ""
    had = "" if worst["load"] is None else f"{worst['load'] / WINDOW_S:.0f} events/s over {WINDOW_S} s at "
    since = "" if worst["since_us"] is None else f", never done with its work since {at(worst['since_us'])}"
    over = "" if worst["over_from"] is None else f", more than it can serve since {moment(float(worst['over_from']))}"
    apart = "it was sent; in a payment-only run the broker's part and the poll's cannot be told apart"
    met = [one for one in starts if one.from_us < worst["start_us"] and one.until_us > worst["handed_us"]]
    took = [(one.replica, at(one.from_us), _length(one.until_us - one.from_us)) for one in met[:2]]
    facts = {
        "owner": owner,
        "sent_late": between("intended_us", "placed_us"),
        "sending": between("placed_us", "accepted_us"),
        "transit": between("handed_us", "received_us"),
        "handed_on": "Order had handed it on" if terms.pipeline else apart,
        "service": _length(worst["service_us"]),
        "slowed": _length(worst["slowed_us"]),
        "usual": _length(usual_us),
        "unserved": _unserved(worst, at),
        "stop": _length(worst["stop_us"]) if worst["stop_us"] else between("left_us", "came_us"),
        "start": at(worst["start_us"]),
        "starts": "; ".join(f"{name} was asked for at {when} and ready {later} later" for name, when, later in took),
        "ahead": f"the worst waited {_length(waited_us)}{events}",
        "load": f"{had}{owner} against {rate}",
        "since": over or since,
    }
    text = sentence.format_map({**worst, **facts})
    return text[0].upper() + text[1:] + "."


def _unserved(worst: Mapping[str, Any], at: Callable[[int], str]) -> str:
    left_us, came_us = worst["left_us"], worst["came_us"]
    if left_us is None:
        return "nobody served it"
    from_us = max(left_us, min(worst["handed_us"], came_us))
    from_us = left_us if from_us == came_us else from_us  # the worst came later, into what had piled up
    return f"nobody served it from {at(from_us)} to {at(came_us)} ({_length(came_us - from_us)})"


def _length(time_us: int | None) -> str:
    return duration(None if time_us is None else time_us / 1e6)
