"""Templates, style, script and words of the pages; what both of them need.

Each word is explained in a sentence to somebody who knows Kafka and not this project.
"""

import re
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from contracts.journal import AlternativeWeighed
from report.causes import LateEpisode, cause_meaning, cause_title
from report.wording import UNKNOWN, count, duration, moment, several, share

HERE: Final = Path(__file__).parent
UNIT: Final = re.compile(r"(?<=\d) (?=(?:%|ms|s|MiB|pp)(?!\w))")
NUMBER: Final = re.compile(r"[−+]?\d|–$")

OF_A_RUN: Final[dict[str, str]] = {
    "promise, target (W)": "so many of the events, in percent, are to be done within so much time, the latency target",
    "latency": "from when the load was meant to send an event (intended) until Payment had done it; a generator or a "
    "group that stands still hides nothing",
    "p99.9": "the latency that 99.9 % of the events do not exceed",
    "replica-minutes": "replicas paid for, added up over time: two replicas for 30 seconds are one replica-minute",
    "packing": "the fewest replicas that hold the events of each second, had all been known before, and were starts, "
    "moves and stops for nothing",
    "requested, ready": "replicas that are paid for, from when they were asked for; and those that can serve",
    "lag": "events that lie in Payment's topic and are not committed yet",
    "plan (epoch)": "which replicas there are and who of them owns which partition; plans are numbered",
    "handover": "a partition gets another owner; only that partition is not served meanwhile",
    "μ, λ": "events per second that one replica serves when it is never idle, and that arrive",
    "cost of an alternative": "predicted replica-seconds, late events at their price included",
    "Rscore": "load that a plan moves to other owners, in replicas that are busy with it; the mean over all plans",
    "effect": "what an order is to cause once: a payment, a parcel, a message",
    "refused": "an event that cannot be handled; a topic of its own (dead letters) takes it instead",
}


def render(template: str, **values: Any) -> str:
    """Return a page: one file that needs nothing beside it."""
    environment = Environment(
        loader=PackageLoader("report.page", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        cause=cause_title, count=count, duration=lambda value: tied(duration(value)), kind=kind, latency=latency,
        meaning=cause_meaning, moment=moment, place=place, share=lambda value: tied(share(value)), span=span,
        tied=tied, weighed_as=weighed_as,
    )  # fmt: skip
    return environment.get_template(template).render(part=part, **values)


def part(name: str) -> str:
    """Return the text of a file that stands beside this one."""
    return (HERE / name).read_text(encoding="utf-8")


def tied(text: str) -> str:
    """Return the text with each number tied to its unit, so that no line ends between them."""
    return UNIT.sub("\u00a0", text)


def kind(text: str) -> str:
    """Return the class of a cell: numbers stand at the right."""
    return "number" if NUMBER.match(text) and all(len(line) < 45 for line in text.splitlines()) else "words"


def latency(value_s: float | None) -> str:
    """Return the latency of a late event, which may never have been done."""
    return "never done" if value_s is None else duration(value_s)


def span(episode: LateEpisode) -> str:
    """Return when an episode was: one moment, or from – until."""
    first, last = moment(episode.from_s), moment(episode.until_s)
    return first if first == last else f"{first} – {last}"


def place(episode: LateEpisode) -> str:
    """Return where an episode was, as far as that is known."""
    parts = (("partition {}", episode.partition), ("{}", episode.replica), ("plan {}", episode.epoch))
    return ", ".join(words.format(value) for words, value in parts if value is not None) or UNKNOWN


def weighed_as(one: AlternativeWeighed) -> str:
    """Return what the policy expected of a plan."""
    moved = f", moving {several(one.moved, 'partition')}" if one.moved else ""
    return f"{several(one.replicas, 'replica')}{moved}: {share(one.in_sla)} in time, cost {one.cost_s:,.1f}"
