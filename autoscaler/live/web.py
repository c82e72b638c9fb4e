"""What the autoscaler's pages show: health, plan, decisions and metrics. Read only."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from autoscaler.live.settings import Pages
from contracts.pages import Answer, WebServer, http_error, not_found

MAX_DECISIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Source:
    """What the pages show. Each function returns plain data, is called from the web thread, and must not wait."""

    last_tick: Callable[[], tuple[int, float]]
    """Ticks taken, and the age of the last one in seconds."""
    plan: Callable[[], Mapping[str, Any]]
    registry: CollectorRegistry
    tick_limit_s: float
    decisions: Callable[[int], list[Any]] = lambda _: []
    troubles: Callable[[], Mapping[str, str]] = dict
    unwell: Callable[[], str] = str
    """The problem that keeps the autoscaler from its work; empty: there is none."""
    unready: Callable[[], str] = str
    """The same, for a problem that a restart does not fix."""
    targets: Callable[[], list[str]] = list
    """HOST:PORT of the replicas' metrics."""


def health(source: Source, *, of_life: bool = False) -> Answer:
    """200 while the last tick is recent and the policy decides: a controller that does neither protects nobody.

    A controller that copes with a problem is `degraded`, and names it: a restart fixes nothing.
    of_life: a problem outside of it, for which it cannot lead, makes it no less alive.
    """
    ticks, age_s = source.last_tick()
    troubles, why = dict(source.troubles()), source.unwell() or ("" if of_life else source.unready())
    if ticks == 0:
        why = "no tick yet"
    elif age_s > source.tick_limit_s:
        why = "the last tick is too long ago"
    body: dict[str, Any] = {
        "status": why or ("degraded" if troubles else "ok"),
        "ticks": ticks,
        "last_tick_age_s": round(age_s, 3),
        "limit_s": source.tick_limit_s,
    }
    body |= {"troubles": troubles} if troubles else {}
    return Answer(msgspec.json.encode(body), "503 Service Unavailable" if why else "200 OK")


def decisions(source: Source, query: str) -> Answer:
    """The newest decisions, newest first; ?limit=1 … 100."""
    text = parse_qs(query).get("limit", [str(MAX_DECISIONS)])[-1]
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= MAX_DECISIONS:
        return http_error("400 Bad Request", f"limit must be an integer from 1 to {MAX_DECISIONS}, not {text[:20]!r}")
    return _json(source.decisions(int(text)))


def _json(data: Any) -> Answer:
    return Answer(msgspec.json.encode(data))


PAGES: Final[dict[str, tuple[str, Callable[[Source, str], Answer]]]] = {
    "/": ("this list", lambda source, query: _json({path: text for path, (text, _) in PAGES.items()})),
    "/healthz": (
        "200 while ticks are recent and the policy decides, else 503; what is wrong",
        lambda source, query: health(source),
    ),
    "/livez": ("the same, but 200 where a restart fixes nothing", lambda source, query: health(source, of_life=True)),
    "/plan": ("plan in force and plan wanted", lambda source, query: _json(source.plan())),
    "/decisions": ("the last decisions, newest first (?limit=)", decisions),
    "/targets": (
        "where the replicas' metrics are, as Prometheus' http_sd_configs wants it",
        lambda source, query: _json([{"targets": source.targets(), "labels": {}}]),
    ),
    "/metrics": (
        "Prometheus metrics",
        lambda source, query: Answer(generate_latest(source.registry), content_type=CONTENT_TYPE_LATEST),
    ),
}


def respond(source: Source, path: str, query: str) -> Answer:
    """Return the answer to one request; problems are JSON {"error": …} with a fitting status."""
    return PAGES[path][1](source, query) if path in PAGES else not_found(path, PAGES)


@contextmanager
def serving(source: Source, settings: Pages) -> Iterator[Callable[[], object]]:
    """Bind the port, if one is set; yield what begins to answer; close the pages at the end. Raises PortTakenError."""
    if not settings.http_port:
        yield lambda: None
        return
    server = WebServer(partial(respond, source), settings.http_port, settings.http_host)
    try:
        yield server.start
    finally:
        server.close()
