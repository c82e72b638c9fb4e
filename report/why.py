"""One sentence for each episode of late events, with the figures that tell its cause."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from report.causes import Cause
from report.history import Span
from report.queues import SLOW, WINDOW_S
from report.wording import duration, moment, several

NEVER: Final[Mapping[Cause, str]] = {
    Cause.UPSTREAM: "It was sent and never reached Payment's topic.",
    Cause.REPLICA_DEAD: "It lay in Payment's topic when a replica died, and nobody ever finished it.",
    Cause.OVERLOADED: "It lay in Payment's topic until the end of the run, and nobody ever finished it.",
}


@dataclass(frozen=True, slots=True)
class Telling:
    """What sentences need beside the episode: the start of the run, the target, the usual service, replicas' starts."""

    started_us: int
    target_us: int
    usual_us: int
    pipeline: bool
    starts: Sequence[Span] = ()
    """From when a replica was asked for until it was ready."""

    def why(self, cause: Cause, worst: Mapping[str, Any]) -> str:
        """Return one sentence.

        worst: of an episode (partition, replica, epoch) and of its worst event, µs; null where not known.
        """
        if worst["latency_us"] is None:
            return NEVER.get(cause, "Never done.")
        text = self._said(cause, worst)
        return text[0].upper() + text[1:] + "."

    def _said(self, cause: Cause, worst: Mapping[str, Any]) -> str:
        owner = f"{worst['replica'] or 'nobody'} (epoch {'unknown' if worst['epoch'] is None else worst['epoch']})"
        usual = duration(self.usual_us / 1e6)
        text = ""
        match cause:
            case Cause.GENERATOR:
                text = f"the generator sent the worst {_length(worst, 'intended_us', 'placed_us')} late"
            case Cause.UPSTREAM if (worst["accepted_us"] or 0) - (worst["placed_us"] or 0) > self.target_us // 10:
                text = f"Order accepted the worst {_length(worst, 'placed_us', 'accepted_us')} after it was placed"
            case Cause.UPSTREAM:
                way = "it was sent; in a payment-only run the broker's part and the poll's cannot be told apart"
                way = "Order had handed it on" if self.pipeline else way
                waited = _length(worst, "handed_us", "received_us")
                text = f"{worst['replica']} had nothing else to do, yet received the worst {waited} after {way}"
            case Cause.DOWNSTREAM if worst["service_us"] > SLOW * self.usual_us:
                own = duration(worst["service_us"] / 1e6)
                text = f"the service of the worst took {own} at {owner}, usual are {usual}"
            case Cause.DOWNSTREAM:
                cost = duration(worst["slowed_us"] / 1e6)
                text = f"services before the worst were slow at {owner} and cost it {cost}; usual are {usual} each"
            case Cause.REPLICA_DEAD:
                took = f"{worst['old']} was gone, {owner} took over partition {worst['partition']}"
                text = f"{took}: {self._unserved(worst)}"
            case Cause.HANDOVER:
                text = f"partition {worst['partition']} went from {worst['old']} to {owner}: {self._unserved(worst)}"
            case Cause.GROUP_STOPPED:
                stop_us, until = worst["stop_us"], self._at(worst["start_us"])
                length = duration(stop_us / 1e6) if stop_us else _length(worst, "left_us", "came_us")
                text = f"no partition finished anything for {length} before {until}, under epoch {worst['epoch']}"
        return text or self._too_much(cause, worst, owner)

    def _too_much(self, cause: Cause, worst: Mapping[str, Any], owner: str) -> str:
        had = "" if worst["load"] is None else f"{worst['load'] / WINDOW_S:.0f} events/s over {WINDOW_S} s at "
        load = f"{had}{owner} against {f'μ = {1e6 / self.usual_us:.0f} events/s' if self.usual_us else 'an unknown μ'}"
        waited_us = worst["start_us"] - worst["handed_us"]
        ahead = f"the worst waited {duration(waited_us / 1e6)}"
        ahead += f", the time of {several(waited_us // self.usual_us, 'event')}" if self.usual_us else ""
        if cause is Cause.REPLICA_STARTING:
            named = [
                f"{one.replica} was asked for at {self._at(one.from_us)} and ready {duration(one.took_us / 1e6)} later"
                for one in self.starts
                if one.from_us < worst["start_us"] and one.from_us + one.took_us > worst["handed_us"]
            ]
            return f"{'; '.join(named[:2])}; {ahead}; {load}"
        if cause is Cause.BURST:
            return f"all that lay ahead had arrived within the last second; {ahead}; {load}"
        over, since_us = worst["over_from"], worst["since_us"]
        since = "" if since_us is None else f", never done with its work since {self._at(since_us)}"
        since = since if over is None else f", more than it can serve since {moment(float(over))}"
        return f"{load}{since}; {ahead}"

    def _at(self, time_us: int) -> str:
        return moment((time_us - self.started_us) / 1e6)

    def _unserved(self, worst: Mapping[str, Any]) -> str:
        left_us, came_us = worst["left_us"], worst["came_us"]
        if left_us is None:
            return "nobody served it"
        from_us = max(left_us, min(worst["handed_us"], came_us))
        if from_us == came_us:  # the worst came later, into what had piled up
            from_us = left_us
        length = duration((came_us - from_us) / 1e6)
        return f"nobody served it from {self._at(from_us)} to {self._at(came_us)} ({length})"


def _length(worst: Mapping[str, Any], begin: str, end: str) -> str:
    begin_us, end_us = worst[begin], worst[end]
    return duration(None if begin_us is None or end_us is None else (end_us - begin_us) / 1e6)
