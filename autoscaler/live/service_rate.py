"""Observes a group from outside for a while, and learns how fast one of its members serves."""

from typing import Final

import numpy as np
from confluent_kafka import Consumer

from autoscaler.live.measurements import CommittedRates, MemberReader
from autoscaler.live.offsets import OffsetReader
from autoscaler.ports import NotReadyError
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.preflight import client_config
from contracts.waiting import Stop

INTERVAL_S: Final = 0.5


def observe_rate(
    connection: Connection, topic: str, group: str, seconds: float, stop: Stop
) -> tuple[float | None, str]:
    """Return the service rate of a busy member (events/s), and why it is unknown: None, and the reason.

    The group is observed for `seconds`, or until `stop` is set. Nothing is written, joined or committed.
    """
    config = client_config(connection, group_id=group, enable_auto_commit=False)
    offsets = OffsetReader(lambda level: Consumer(config | {"isolation.level": level}), topic=topic, is_foreign=True)
    members, rates = MemberReader(connection, group, topic), CommittedRates()
    until_s, problem = monotonic_s() + seconds, ""
    try:
        while monotonic_s() < until_s and not stop.is_set():
            try:
                at_s, found = offsets.read()
            except NotReadyError as error:
                problem = str(error)
            else:
                places = [(one.end, one.committed) for one in found]
                known = {number for number, place in enumerate(places) if None not in place}
                ends, committed = np.array([(end or 0, done or 0) for end, done in places], dtype=np.float64).T
                owned = {member: read & known for member, read in (members.read() or {}).items()}
                rates.observe(at_s, owned, committed, ends - committed)
                problem = "" if known else f"{group} has no committed offset of {topic}"
            stop.wait(INTERVAL_S)
    finally:
        offsets.close()
    idle = f"no member of {group} was behind for several commits in {seconds:g} s"
    return rates.service_rate, "" if rates.service_rate else problem or members.problem or idle
