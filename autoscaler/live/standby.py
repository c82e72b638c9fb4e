"""Standing by: everything is loaded and compiled, and the pages say who leads, or why this one cannot."""

import logging
from functools import partial
from threading import Event
from typing import Final

from prometheus_client import CollectorRegistry

from autoscaler.live.composition import policy_from
from autoscaler.live.leadership import Leadership
from autoscaler.live.loop import rehearse
from autoscaler.live.metrics import LEADING, TROUBLE
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.live.troubles import LASTING, Troubles
from autoscaler.live.web import Source, bound

log = logging.getLogger("autoscaler")
WHAT: Final = "leadership"


def stand_by(leadership: Leadership, settings: AutoscalerSettings, stop: Event) -> bool:
    """Wait until we lead (True), or `stop` is set. Raises PortTakenError."""
    rehearse(  # before the pages: who is Ready can lead at once
        policy_from(settings),
        partitions=max(1, settings.payment_partitions),
        service_rate=settings.first_service_rate,
        interval_s=settings.decision_interval_s,
        done=stop.is_set,
    )
    registry = CollectorRegistry()
    LEADING.gauge(registry).set(0)
    shown = TROUBLE.gauge(registry)
    shown.labels(WHAT).set(0)
    troubles = Troubles(log.warning, lambda what, is_so: shown.labels(what).set(is_so))
    source = Source(
        last_tick=lambda: (1, 0.0),  # there is none to wait for
        plan=dict,
        decisions=lambda _: [],
        registry=registry,
        tick_limit_s=1.0,
        troubles=lambda: troubles.now or {WHAT: f"stands by; {leadership.holder or 'nobody'} leads"},
        unready=lambda: troubles.now.get(WHAT, ""),
    )
    pages = bound(source, settings)
    if pages is not None:
        pages.start()
    try:
        return leadership.win(stop, partial(troubles.tell, WHAT, after=LASTING))
    finally:
        if pages is not None:
            pages.close()
