"""The autoscaler's pages: live page, health, plan, decisions and metrics. Read-only."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import parse_qs

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from autoscaler.page.feed import Feed
from contracts.pages import Answer, WebServer, http_error, not_found
from contracts.settings import WebPages

MAX_DECISIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Source:
    """Data of the pages. Each function is called from the web thread, returns plain data and must not wait."""

    last_tick: Callable[[], tuple[int, float]]
    """Number of ticks, and age of the last tick, seconds."""
    plan: Callable[[], Mapping[str, Any]]
    registry: CollectorRegistry
    tick_limit_s: float
    decisions: Callable[[int], list[Any]] = lambda _: []
    problems: Callable[[], Mapping[str, str]] = dict
    unhealthy_reason: Callable[[], str] = str
    """Problem that stops the autoscaler from doing its work; empty: none."""
    not_ready_reason: Callable[[], str] = str
    """Problem that a restart does not fix, so /livez stays 200."""
    hold: Callable[[], str] = str
    """The pause or pin that applies; empty: none."""
    conditions: Callable[[], Sequence[Any]] = tuple
    targets: Callable[[], list[str]] = list
    """HOST:PORT of the replicas' metrics."""
    live: Feed | None = None
    """The live page; None: the process has none, and `/` is the list of pages."""


def health(source: Source, *, is_liveness: bool = False) -> Answer:
    """Return 200 while ticks are recent and the policy decides, else 503 with the reason.

    A controller that works in spite of a problem is `degraded` (200), because a restart would not help.
    is_liveness: ignore reasons that a restart does not fix.
    """
    ticks, age_s = source.last_tick()
    problems = dict(source.problems())
    reason = source.unhealthy_reason() or ("" if is_liveness else source.not_ready_reason())
    if ticks == 0:
        reason = "no tick yet"
    elif age_s > source.tick_limit_s:
        reason = f"the last tick is older than {source.tick_limit_s:g} s"
    body: dict[str, Any] = {
        "status": reason or ("degraded" if problems else "ok"),
        "ticks": ticks,
        "last_tick_age_s": round(age_s, 3),
        "limit_s": source.tick_limit_s,
    }
    body |= {"problems": problems} if problems else {}
    body |= {"hold": hold} if (hold := source.hold()) else {}
    return Answer(msgspec.json.encode(body), "503 Service Unavailable" if reason else "200 OK")


def decisions(source: Source, query: str) -> Answer:
    """Return the newest decisions, newest first. query: limit=1 to 100 (default 100)."""
    text = parse_qs(query).get("limit", [str(MAX_DECISIONS)])[-1]
    if text not in map(str, range(1, MAX_DECISIONS + 1)):
        return http_error("400 Bad Request", f"limit must be an integer from 1 to {MAX_DECISIONS}, not {text[:20]!r}")
    return _json(source.decisions(int(text)))


def _list() -> Answer:
    return _json({path: text for path, (text, _) in PAGES.items()})


def _json(data: Any) -> Answer:
    return Answer(msgspec.json.encode(data))


PAGES: Final[dict[str, tuple[str, Callable[[Source, str], Answer]]]] = {
    "/": ("the live page (data: /live/state, /live/events)", lambda source, query: _list()),
    "/pages": ("this list", lambda source, query: _list()),
    "/healthz": ("200 while ticks are recent and the policy decides, else 503; all problems", lambda of, _: health(of)),
    "/livez": ("like /healthz, but 200 if a restart cannot help", lambda source, _: health(source, is_liveness=True)),
    "/plan": ("the plan in force and the intended plan", lambda source, query: _json(source.plan())),
    "/decisions": ("the last decisions, newest first (?limit=)", decisions),
    "/status": ("four conditions, with reason and time", lambda of, _: _json({"conditions": of.conditions()})),
    "/targets": (
        "metric addresses of the replicas, for Prometheus' http_sd_configs",
        lambda source, query: _json([{"targets": source.targets(), "labels": {}}]),
    ),
    "/metrics": (
        "Prometheus metrics",
        lambda source, query: Answer(generate_latest(source.registry), content_type=CONTENT_TYPE_LATEST),
    ),
}


def respond(source: Source, path: str, query: str) -> Answer:
    """Return the answer to one request. Errors are JSON {"error": …} with status 404 or 400."""
    answer = source.live.answer(path) if source.live else None
    return answer or (PAGES[path][1](source, query) if path in PAGES else not_found(path, PAGES))


@contextmanager
def serving(source: Source, settings: WebPages) -> Iterator[Callable[[], object]]:
    """Bind the port, if one is set. Yields the function that starts answering. Raises PortTakenError."""
    if not settings.http_port:
        yield lambda: None
        return
    server = WebServer(partial(respond, source), settings.http_port, settings.http_host)
    try:
        yield server.start
    finally:
        server.close()
