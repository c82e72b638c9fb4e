"""One sentence for each episode of late events, with the figures that tell its cause."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from report.causes import Cause
from report.queues import SLOW, WINDOW_S
from report.wording import duration, moment, several

Figures = Mapping[str, Any]
"""Of an episode (partition, replica, epoch) and of its worst event, µs; null where not known."""


@dataclass(frozen=True, slots=True)
class Telling:
    """What sentences need beside the episode: the start of the run, the target, the usual service, replicas' starts."""

    started_us: int
    target_us: int
    usual_us: int
    pipeline: bool
    starts: Sequence[tuple[str, int, int]] = ()
    """Replica, requested, ready (µs)."""

    def why(self, cause: Cause, worst: Figures) -> str:
        """Return one sentence."""
        if worst.get("latency_us") is None:
            return NEVER.get(cause, "Never done.")
        text = SENTENCES[cause](self, worst)
        return text[0].upper() + text[1:] + "."

    def at(self, time_us: int) -> str:
        """Return a time since the start of the run."""
        return moment((time_us - self.started_us) / 1e6)

    def usual(self) -> str:
        """Return how long a service takes."""
        return duration(self.usual_us / 1e6)

    def load(self, worst: Figures) -> str:
        """Return what its replica had to do, and what it can do."""
        rate = worst["load"]
        had = "" if rate is None else f"{rate / WINDOW_S:.0f} events/s over {WINDOW_S} s at "
        pace = f"μ = {1e6 / self.usual_us:.0f} events/s" if self.usual_us else "an unknown μ"
        return f"{had}{_owner(worst)} against {pace}"

    def ahead(self, worst: Figures) -> str:
        """Return how much work lay ahead of the worst event."""
        waited_us = worst["start_us"] - worst["handed_us"]
        events = f", the time of {several(waited_us // self.usual_us, 'event')}" if self.usual_us else ""
        return f"the worst waited {duration(waited_us / 1e6)}{events}"

    def unserved(self, worst: Figures) -> str:
        """Return since when and until when its partition had no owner."""
        left_us, came_us = worst["left_us"], worst["came_us"]
        if left_us is None:
            return "nobody served it"
        from_us = max(left_us, min(worst["handed_us"], came_us))
        if from_us == came_us:  # the worst came later, into what had piled up
            from_us = left_us
        length = duration((came_us - from_us) / 1e6)
        return f"nobody served it from {self.at(from_us)} to {self.at(came_us)} ({length})"


def _owner(worst: Figures) -> str:
    return f"{worst['replica'] or 'nobody'} (epoch {worst['epoch'] if worst['epoch'] is not None else 'unknown'})"


def _length(worst: Figures, begin: str, end: str) -> str:
    begin_us, end_us = worst[begin], worst[end]
    return duration(None if begin_us is None or end_us is None else (end_us - begin_us) / 1e6)


def _upstream(telling: Telling, worst: Figures) -> str:
    sent = worst["accepted_us"]
    if sent is not None and sent - worst["placed_us"] > telling.target_us // 10:
        return f"Order accepted the worst {_length(worst, 'placed_us', 'accepted_us')} after it was placed"
    way = _length(worst, "handed_us", "received_us")
    text = f"{worst['replica']} had nothing else to do, yet received the worst {way}"
    if telling.pipeline:
        return text + " after Order had handed it on"
    return text + " after it was sent; in a payment-only run the broker's part and the poll's cannot be told apart"


def _downstream(telling: Telling, worst: Figures) -> str:
    own_us, slowed_us = worst["service_us"], worst["slowed_us"]
    if own_us > SLOW * telling.usual_us:
        own = duration(own_us / 1e6)
        return f"the service of the worst took {own} at {_owner(worst)}, usual are {telling.usual()}"
    slowed = f"services before the worst were slow at {_owner(worst)} and cost it {duration(slowed_us / 1e6)}"
    return f"{slowed}; usual are {telling.usual()} each"


def _stopped(telling: Telling, worst: Figures) -> str:
    stop_us = worst["stop_us"]
    length = duration(stop_us / 1e6) if stop_us else _length(worst, "left_us", "came_us")
    until = telling.at(worst["start_us"])
    return f"no partition finished anything for {length} before {until}, under epoch {worst['epoch']}"


def _starting(telling: Telling, worst: Figures) -> str:
    begin_us, end_us = worst["handed_us"], worst["start_us"]
    named = "; ".join(
        f"{replica} was asked for at {telling.at(asked_us)} and ready {duration((ready_us - asked_us) / 1e6)} later"
        for replica, asked_us, ready_us in [one for one in telling.starts if one[1] < end_us and one[2] > begin_us][:2]
    )
    return f"{named}; {telling.ahead(worst)}; {telling.load(worst)}"


def _overloaded(telling: Telling, worst: Figures) -> str:
    over, since_us = worst["over_from"], worst["since_us"]
    since = "" if since_us is None else f", never done with its work since {telling.at(since_us)}"
    since = since if over is None else f", more than it can serve since {moment(float(over))}"
    return f"{telling.load(worst)}{since}; {telling.ahead(worst)}"


SENTENCES: Final[Mapping[Cause, Callable[[Telling, Figures], str]]] = {
    Cause.GENERATOR: lambda _, worst: f"the generator sent the worst {_length(worst, 'intended_us', 'placed_us')} late",
    Cause.UPSTREAM: _upstream,
    Cause.DOWNSTREAM: _downstream,
    Cause.REPLICA_DEAD: lambda telling, worst: (
        f"{worst['old']} was gone, {_owner(worst)} took over partition {worst['partition']}: {telling.unserved(worst)}"
    ),
    Cause.GROUP_STOPPED: _stopped,
    Cause.HANDOVER: lambda telling, worst: (
        f"partition {worst['partition']} went from {worst['old']} to {_owner(worst)}: {telling.unserved(worst)}"
    ),
    Cause.REPLICA_STARTING: _starting,
    Cause.BURST: lambda telling, worst: (
        f"all that lay ahead had arrived within the last second; {telling.ahead(worst)}; {telling.load(worst)}"
    ),
    Cause.OVERLOADED: _overloaded,
}
NEVER: Final[Mapping[Cause, str]] = {
    Cause.UPSTREAM: "It was sent and never reached Payment's topic.",
    Cause.REPLICA_DEAD: "It lay in Payment's topic when a replica died, and nobody ever finished it.",
    Cause.OVERLOADED: "It lay in Payment's topic until the end of the run, and nobody ever finished it.",
}
