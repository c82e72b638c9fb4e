"""One sentence for each spell of late events, with the figures that tell its cause."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from report.causes import Cause
from report.spark.pace import WINDOW_S
from report.spark.waiting import SLOW
from report.wording import duration, moment, several


@dataclass(frozen=True, slots=True)
class Spell:
    """What a sentence is about. Figures: of the spell's worst event, µs; null where not known."""

    partition: int | None
    replica: str | None
    epoch: int | None
    events: int
    figures: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Telling:
    """What sentences need beside the spell: the start of the run, the target, the usual service, replicas' starts."""

    started_us: int
    target_us: int
    usual_us: int
    pipeline: bool
    starts: Sequence[tuple[str, int, int]] = ()
    """Replica, requested, ready (µs)."""

    def why(self, cause: Cause, spell: Spell) -> str:
        """Return one sentence."""
        if spell.figures.get("latency_us") is None:
            return _NEVER.get(cause, "Never done.")
        text = _SENTENCES[cause](self, spell)
        return text[0].upper() + text[1:] + "."

    def at(self, time_us: int) -> str:
        """Return a time since the start of the run."""
        return moment((time_us - self.started_us) / 1e6)

    def pace(self) -> str:
        """Return what a replica can do, in words."""
        return f"μ = {1e6 / self.usual_us:.0f} events/s" if self.usual_us else "an unknown μ"

    def load(self, spell: Spell) -> str:
        """Return what its replica had to do."""
        rate = spell.figures["load"]
        if rate is None:
            return f"{_owner(spell)} against {self.pace()}"
        return f"{rate / WINDOW_S:.0f} events/s over {WINDOW_S} s at {_owner(spell)} against {self.pace()}"

    def ahead(self, spell: Spell) -> str:
        """Return how much work lay ahead of the worst event."""
        waited_us = spell.figures["start_us"] - spell.figures["handed_us"]
        if not self.usual_us:
            return f"the worst waited {duration(waited_us / 1e6)}"
        return (
            f"the worst waited {duration(waited_us / 1e6)}, the time of {several(waited_us // self.usual_us, 'event')}"
        )


def _owner(spell: Spell) -> str:
    return f"{spell.replica or 'nobody'} (epoch {spell.epoch if spell.epoch is not None else 'unknown'})"


def _length(spell: Spell, begin: str, end: str) -> str:
    begin_us, end_us = spell.figures[begin], spell.figures[end]
    return duration(None if begin_us is None or end_us is None else (end_us - begin_us) / 1e6)


def _generator(telling: Telling, spell: Spell) -> str:
    return f"the generator sent the worst {_length(spell, 'intended_us', 'placed_us')} late"


def _upstream(telling: Telling, spell: Spell) -> str:
    sent = spell.figures["accepted_us"]
    if sent is not None and sent - spell.figures["placed_us"] > telling.target_us // 10:
        return f"Order accepted the worst {_length(spell, 'placed_us', 'accepted_us')} after it was placed"
    text = (
        f"{spell.replica} had nothing else to do, yet received the worst {_length(spell, 'handed_us', 'received_us')}"
    )
    if telling.pipeline:
        return text + " after Order had handed it on"
    return text + " after it was sent; in a payment-only run the broker's part and the poll's cannot be told apart"


def _downstream(telling: Telling, spell: Spell) -> str:
    usual = duration(telling.usual_us / 1e6)
    own_us = spell.figures["service_us"]
    if own_us > SLOW * telling.usual_us:
        return f"the service of the worst took {duration(own_us / 1e6)} at {_owner(spell)}, usual are {usual}"
    slowed = duration(spell.figures["slowed_us"] / 1e6)
    return f"services before the worst were slow at {_owner(spell)} and cost it {slowed}; usual are {usual} each"


def _changed_hands(telling: Telling, spell: Spell) -> str:
    left_us, came_us, handed_us = (spell.figures[name] for name in ("left_us", "came_us", "handed_us"))
    if left_us is None:
        return "nobody served it"
    from_us = max(left_us, min(handed_us, came_us))
    if from_us == came_us:  # the worst came later, into what had piled up
        from_us = left_us
    length = duration((came_us - from_us) / 1e6)
    return f"nobody served it from {telling.at(from_us)} to {telling.at(came_us)} ({length})"


def _dead(telling: Telling, spell: Spell) -> str:
    return f"{spell.figures['old']} was gone, {_owner(spell)} took over partition {spell.partition}: " + _changed_hands(
        telling, spell
    )


def _stopped(telling: Telling, spell: Spell) -> str:
    stop_us = spell.figures["stop_us"] or 0
    length = duration(stop_us / 1e6) if stop_us else _length(spell, "left_us", "came_us")
    until = telling.at(spell.figures["start_us"])
    return f"no partition finished anything for {length} before {until}, under epoch {spell.epoch}"


def _handover(telling: Telling, spell: Spell) -> str:
    way = f"partition {spell.partition} went from {spell.figures['old']} to {_owner(spell)}"
    return f"{way}: {_changed_hands(telling, spell)}"


def _starting(telling: Telling, spell: Spell) -> str:
    begin_us, end_us = spell.figures["handed_us"], spell.figures["start_us"]
    waited = [one for one in telling.starts if one[1] < end_us and one[2] > begin_us]
    named = "; ".join(
        f"{replica} was asked for at {telling.at(asked_us)} and ready {duration((ready_us - asked_us) / 1e6)} later"
        for replica, asked_us, ready_us in waited[:2]
    )
    return f"{named}; {telling.ahead(spell)}; {telling.load(spell)}"


def _burst(telling: Telling, spell: Spell) -> str:
    return f"all that lay ahead had arrived within the last second; {telling.ahead(spell)}; {telling.load(spell)}"


def _overloaded(telling: Telling, spell: Spell) -> str:
    over = spell.figures["over_from"]
    since_us = spell.figures["since_us"]
    if over is not None:
        since = f", more than it can serve since {moment(float(over))}"
    else:
        since = "" if since_us is None else f", never done with its work since {telling.at(since_us)}"
    return f"{telling.load(spell)}{since}; {telling.ahead(spell)}"


_SENTENCES: Final[Mapping[Cause, Callable[[Telling, Spell], str]]] = {
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
