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
            return _NEVER.get(cause, "Never done.")
        text = _SENTENCES[cause](self, worst)
        return text[0].upper() + text[1:] + "."

    def at(self, time_us: int) -> str:
        """Return a time since the start of the run."""
        return moment((time_us - self.started_us) / 1e6)

    def pace(self) -> str:
        """Return what a replica can do, in words."""
        return f"μ = {1e6 / self.usual_us:.0f} events/s" if self.usual_us else "an unknown μ"

    def load(self, worst: Figures) -> str:
        """Return what its replica had to do."""
        rate = worst["load"]
        if rate is None:
            return f"{_owner(worst)} against {self.pace()}"
        return f"{rate / WINDOW_S:.0f} events/s over {WINDOW_S} s at {_owner(worst)} against {self.pace()}"

    def ahead(self, worst: Figures) -> str:
        """Return how much work lay ahead of the worst event."""
        waited_us = worst["start_us"] - worst["handed_us"]
        if not self.usual_us:
            return f"the worst waited {duration(waited_us / 1e6)}"
        return (
            f"the worst waited {duration(waited_us / 1e6)}, the time of {several(waited_us // self.usual_us, 'event')}"
        )


def _owner(worst: Figures) -> str:
    return f"{worst['replica'] or 'nobody'} (epoch {worst['epoch'] if worst['epoch'] is not None else 'unknown'})"


def _length(worst: Figures, begin: str, end: str) -> str:
    begin_us, end_us = worst[begin], worst[end]
    return duration(None if begin_us is None or end_us is None else (end_us - begin_us) / 1e6)


def _generator(telling: Telling, worst: Figures) -> str:
    return f"the generator sent the worst {_length(worst, 'intended_us', 'placed_us')} late"


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
    usual = duration(telling.usual_us / 1e6)
    own_us = worst["service_us"]
    if own_us > SLOW * telling.usual_us:
        return f"the service of the worst took {duration(own_us / 1e6)} at {_owner(worst)}, usual are {usual}"
    slowed = duration(worst["slowed_us"] / 1e6)
    return f"services before the worst were slow at {_owner(worst)} and cost it {slowed}; usual are {usual} each"


def _changed_hands(telling: Telling, worst: Figures) -> str:
    left_us, came_us, handed_us = (worst[name] for name in ("left_us", "came_us", "handed_us"))
    if left_us is None:
        return "nobody served it"
    from_us = max(left_us, min(handed_us, came_us))
    if from_us == came_us:  # the worst came later, into what had piled up
        from_us = left_us
    length = duration((came_us - from_us) / 1e6)
    return f"nobody served it from {telling.at(from_us)} to {telling.at(came_us)} ({length})"


def _dead(telling: Telling, worst: Figures) -> str:
    return f"{worst['old']} was gone, {_owner(worst)} took over partition {worst['partition']}: " + _changed_hands(
        telling, worst
    )


def _stopped(telling: Telling, worst: Figures) -> str:
    stop_us = worst["stop_us"] or 0
    length = duration(stop_us / 1e6) if stop_us else _length(worst, "left_us", "came_us")
    until = telling.at(worst["start_us"])
    return f"no partition finished anything for {length} before {until}, under epoch {worst['epoch']}"


def _handover(telling: Telling, worst: Figures) -> str:
    way = f"partition {worst['partition']} went from {worst['old']} to {_owner(worst)}"
    return f"{way}: {_changed_hands(telling, worst)}"


def _starting(telling: Telling, worst: Figures) -> str:
    begin_us, end_us = worst["handed_us"], worst["start_us"]
    waited = [one for one in telling.starts if one[1] < end_us and one[2] > begin_us]
    named = "; ".join(
        f"{replica} was asked for at {telling.at(asked_us)} and ready {duration((ready_us - asked_us) / 1e6)} later"
        for replica, asked_us, ready_us in waited[:2]
    )
    return f"{named}; {telling.ahead(worst)}; {telling.load(worst)}"


def _burst(telling: Telling, worst: Figures) -> str:
    return f"all that lay ahead had arrived within the last second; {telling.ahead(worst)}; {telling.load(worst)}"


def _overloaded(telling: Telling, worst: Figures) -> str:
    over = worst["over_from"]
    since_us = worst["since_us"]
    if over is not None:
        since = f", more than it can serve since {moment(float(over))}"
    else:
        since = "" if since_us is None else f", never done with its work since {telling.at(since_us)}"
    return f"{telling.load(worst)}{since}; {telling.ahead(worst)}"


_SENTENCES: Final[Mapping[Cause, Callable[[Telling, Figures], str]]] = {
    Cause.GENERATOR: _generator,
    Cause.UPSTREAM: _upstream,
    Cause.DOWNSTREAM: _downstream,
    Cause.REPLICA_DEAD: _dead,
    Cause.GROUP_STOPPED: _stopped,
    Cause.HANDOVER: _handover,
    Cause.REPLICA_STARTING: _starting,
    Cause.BURST: _burst,
    Cause.OVERLOADED: _overloaded,
}
_NEVER: Final[Mapping[Cause, str]] = {
    Cause.UPSTREAM: "It was sent and never reached Payment's topic.",
    Cause.REPLICA_DEAD: "It lay in Payment's topic when a replica died, and nobody ever finished it.",
    Cause.OVERLOADED: "It lay in Payment's topic until the end of the run, and nobody ever finished it.",
}
