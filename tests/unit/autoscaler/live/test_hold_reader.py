"""Until the control topic was read to its end, nothing changes, and no command says that the group is not paused."""

import os
from unittest.mock import Mock

import command_line
import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.live import hold_reader
from autoscaler.policies.guards.holds import Held
from contracts.connection import Connection
from contracts.topics import ScaledGroup
from tailpack.cli import holds
from tailpack.errors import TailpackError

SETTINGS = (Connection(bootstrap_servers="unused:9092"), ScaledGroup())


def test_nothing_changes_until_the_control_topic_was_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = Mock(error="not authorized", read=lambda *_: [], is_at_end=lambda: False)
    monkeypatch.setattr(hold_reader, "RecordReader", lambda *_, **__: topic)
    monkeypatch.setattr(hold_reader, "READ_DEADLINE_S", 0.0)
    monkeypatch.setattr(holds, "_read", lambda _: SETTINGS)
    with pytest.raises(TailpackError, match=hold_reader.NOT_READ):
        command_line.run("status")
    reader = hold_reader.HoldReader(*SETTINGS)
    guard = Held(Wants(4), hold=reader.restriction)
    decision = guard.decide(seen([10] * 5, replicas=2))
    assert (decision.action, decision.plan.count) == ("no-change", 2)
    assert hold_reader.NOT_READ in decision.reason
    assert reader.problem == f"{hold_reader.NOT_READ}: not authorized"
    topic.is_at_end = lambda: True
    assert (guard.decide(seen([10] * 5, replicas=2)).plan.count, reader.problem) == (4, "")


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "getuser", Mock(side_effect=KeyError))
    assert holds._user() == str(os.getuid())
