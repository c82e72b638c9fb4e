"""The causes of lateness in words: what each means, and a sentence with the figures that tell it of one episode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
"""Cause → one sentence for the page."""
NEVER_DONE: Final[Mapping[str, str]] = {
    Cause.UPSTREAM: "It was sent and never reached Payment's topic.",
    Cause.REPLICA_DEAD: "It lay in Payment's topic when a replica died, and nobody ever finished it.",
    Cause.OVERLOADED: "It lay in Payment's topic until the end of the run, and nobody ever finished it.",
}


def cause_title(cause: str) -> str:
    """Return the cause's name as a reader wants it: "replica-dead" is "Replica dead"; unknown ones alike."""
    return cause.replace("-", " ").capitalize()


def cause_meaning(cause: str) -> str:
    """Return its sentence; empty for a cause that this version does not know."""
    return MEANINGS.get(cause, "")


@dataclass(frozen=True, slots=True)
class Sentences:
    """Why an episode was late, in one sentence."""

    terms: Terms
    starts: Sequence[Span]
    """From when a replica was requested until it was ready."""

    def why(self, cause: Cause, worst: Mapping[str, Any]) -> str:
        """Return one sentence.

        worst: of an episode (partition, replica, epoch) and of its worst event, µs; None where not known.
        """
        if worst["latency_us"] is None:
            return NEVER_DONE.get(cause, "Never done.")
        text = self._said(cause, worst)
        return text[0].upper() + text[1:] + "."

    def _said(self, cause: Cause, worst: Mapping[str, Any]) -> str:
        owner = f"{worst['replica'] or 'nobody'} (epoch {'unknown' if worst['epoch'] is None else worst['epoch']})"
        partition, usual_us = f"partition {worst['partition']}", self.terms.usual.service_us
        match cause:
            case Cause.GENERATOR:
                text = f"the generator sent the worst {_between(worst, 'intended_us', 'placed_us')} late"
            case Cause.UPSTREAM if (worst["accepted_us"] or 0) - (worst["placed_us"] or 0) > self.terms.target_us // 10:
                text = f"Order accepted the worst {_between(worst, 'placed_us', 'accepted_us')} after it was placed"
            case Cause.UPSTREAM:
                way = "it was sent; in a payment-only run the broker's part and the poll's cannot be told apart"
                text = f"{worst['replica']} had nothing else to do, yet received the worst "
                text += f"{_between(worst, 'handed_us', 'received_us')} after "
                text += "Order had handed it on" if self.terms.pipeline else way
            case Cause.DOWNSTREAM if worst["service_us"] > SLOW * usual_us:
                text = f"the service of the worst took {_length(worst['service_us'])} at {owner}, "
                text += f"usual are {_length(usual_us)}"
            case Cause.DOWNSTREAM:
                text = f"services before the worst were slow at {owner} and cost it {_length(worst['slowed_us'])}; "
                text += f"usual are {_length(usual_us)} each"
            case Cause.REPLICA_DEAD:
                text = f"{worst['old']} was gone, {owner} took over {partition}: {self._unserved(worst)}"
            case Cause.HANDOVER:
                text = f"{partition} went from {worst['old']} to {owner}: {self._unserved(worst)}"
            case Cause.GROUP_STOPPED:
                length = _length(worst["stop_us"]) if worst["stop_us"] else _between(worst, "left_us", "came_us")
                until = self._at(worst["start_us"])
                text = f"no partition finished anything for {length} before {until}, under epoch {worst['epoch']}"
            case _:
                text = self._too_much(cause, worst, owner)
        return text

    def _too_much(self, cause: Cause, worst: Mapping[str, Any], owner: str) -> str:
        usual_us, waited_us = self.terms.usual.service_us, worst["start_us"] - worst["handed_us"]
        rate = f"μ = {1e6 / usual_us:.0f} events/s" if usual_us else "an unknown μ"
        had = "" if worst["load"] is None else f"{worst['load'] / WINDOW_S:.0f} events/s over {WINDOW_S} s at "
        load = f"{had}{owner} against {rate}"
        ahead = f"the worst waited {_length(waited_us)}"
        ahead += f", the time of {several(waited_us // usual_us, 'event')}" if usual_us else ""
        if cause is Cause.REPLICA_STARTING:
            met = (one for one in self.starts if worst["handed_us"] < one.until_us and one.from_us < worst["start_us"])
            named = [
                f"{one.replica} was asked for at {self._at(one.from_us)} and ready "
                f"{_length(one.until_us - one.from_us)} later"
                for one in met
            ]
            return f"{'; '.join(named[:2])}; {ahead}; {load}"
        if cause is Cause.BURST:
            return f"all that lay ahead had arrived within the last second; {ahead}; {load}"
        since = "" if worst["since_us"] is None else f", never done with its work since {self._at(worst['since_us'])}"
        if worst["over_from"] is not None:
            since = f", more than it can serve since {moment(float(worst['over_from']))}"
        return f"{load}{since}; {ahead}"

    def _unserved(self, worst: Mapping[str, Any]) -> str:
        left_us, came_us = worst["left_us"], worst["came_us"]
        if left_us is None:
            return "nobody served it"
        from_us = max(left_us, min(worst["handed_us"], came_us))
        from_us = left_us if from_us == came_us else from_us  # the worst came later, into what had piled up
        return f"nobody served it from {self._at(from_us)} to {self._at(came_us)} ({_length(came_us - from_us)})"

    def _at(self, time_us: int) -> str:
        return moment((time_us - self.terms.started_us) / 1e6)


def _length(time_us: int | None) -> str:
    return duration(None if time_us is None else time_us / 1e6)


def _between(worst: Mapping[str, Any], begin: str, end: str) -> str:
    known = worst[begin] is not None and worst[end] is not None
    return _length(worst[end] - worst[begin] if known else None)
