"""Until the control topic was read to its end, nothing changes, and no command says that the group is not paused."""

import os
from unittest.mock import Mock

import command_line
import msgspec
import pytest
from unit.autoscaler.builders import Wants, seen

from autoscaler.live import hold_reader
from autoscaler.live.hold_reader import PAUSED, annotated_hold
from autoscaler.policies.guards.holds import Held
from contracts.connection import Connection
from contracts.holds import Direction, Hold, hold_key
from contracts.topics import ScaledGroup
from tailpack.cli import holds
from tailpack.errors import TailpackError

SETTINGS = (Connection(bootstrap_servers="unused:9092"), ScaledGroup())
KEYS = {is_order: hold_key("payment", "payments.requested", is_order=is_order) for is_order in (False, True)}


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


def test_an_order_about_act_is_carried_out_once_it_was_read_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    records, now_us, refused, is_at_end = list[Mock](), [10], dict[Hold, str](), [False]
    topic = Mock(error="", read=lambda *_: [records.pop(0)] if records else [], is_at_end=lambda: is_at_end[0])
    monkeypatch.setattr(hold_reader, "RecordReader", lambda *_, **__: topic)
    monkeypatch.setattr(hold_reader, "READ_DEADLINE_S", 0.0)
    reader = hold_reader.HoldReader(
        *SETTINGS, configured="on", refused=lambda order: refused.get(order, ""), clock_us=lambda: now_us[0]
    )

    def act(*directions: Direction, present: str = "?", is_order: bool = True) -> str:
        for direction in directions:
            order = Hold(at_us=0, direction=direction, until_us=50, by="anna")
            records.append(Mock(key=KEYS[is_order], value=msgspec.json.encode(order), offset=7))
            reader.act(present)
        return reader.act(present)

    assert act(Direction.OFF, present="propose") == "propose", "the topic was not read to its end"
    is_at_end[0] = True
    assert act() == "off"
    assert str(reader.order).startswith("act = off until")
    assert act(Direction.PIN) == act(Direction.PROPOSE, is_order=False) == "off", "of another kind"
    assert reader.problem.count("skipped offset 7") == 2
    act(Direction.ALL, is_order=False)
    assert (act(Direction.PROPOSE), reader.current() is not None) == ("propose", True), "independent of a pause"
    assert reader.order is not None
    refused[reader.order] = "no folder"
    assert act() == "on"
    assert (reader.problem.endswith("is not carried out: no folder"), reader.order) == (True, None)
    assert (act(Direction.ON), reader.order, reader.problem) == ("on", None, ""), "as configured"
    assert act(Direction.OFF) == "off"
    now_us[0] = 50
    assert act() == "on"


def test_a_user_without_a_name_is_named_by_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holds, "getuser", Mock(side_effect=KeyError))
    assert holds._user() == str(os.getuid())


PIN_3 = {"-replicas": "3"}
"""Annotations, by what follows PAUSED in their names."""


@pytest.mark.parametrize(
    ("annotations", "direction", "problem"),
    [
        ({"": "true"}, Direction.ALL, ""),
        ({"": "false", "-scale-out": "true"}, Direction.OUT, ""),
        ({"-scale-in": "true", "-scale-out": "true"}, Direction.ALL, ""),
        (PIN_3 | {"": "true"}, Direction.PIN, ""),
        ({"-replicas": "9"}, None, f"{PAUSED}-replicas: '9' must be a number from 1 to 4"),
        ({"-replicas": "0"}, None, "must be a number"),
        ({"-replicas": "many", "-scale-in": "true"}, Direction.IN, "'many' must be a number"),
        ({"": "yes"}, None, f"{PAUSED}: 'yes' must be true or false"),
        ({}, None, ""),
    ],
)
def test_annotations_with_the_words_of_keda_are_holds(
    annotations: dict[str, str], direction: Direction | None, problem: str
) -> None:
    found, why = annotated_hold({PAUSED + name: value for name, value in annotations.items()}, 1, 4)
    assert (found and found.direction, problem in why, bool(why)) == (direction, True, bool(problem))


def test_the_stricter_of_command_and_annotation_holds_and_a_hold_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    until = Hold(at_us=0, direction=Direction.IN, until_us=50, by="anna")
    record = Mock(key=KEYS[False], value=msgspec.json.encode(until), offset=0)
    records, annotations, now_us = [record], {PAUSED + "-scale-out": "true"}, [49]
    topic = Mock(error="", read=lambda *_: [records.pop()] if records else [], is_at_end=lambda: not records)
    monkeypatch.setattr(hold_reader, "RecordReader", lambda *_, **__: topic)
    reader = hold_reader.HoldReader(*SETTINGS, clock_us=lambda: now_us[0])
    reader.annotated = lambda: annotated_hold(annotations, 1, 4)
    both = reader.restriction()
    assert both is not None
    assert (both.may_grow, both.may_shrink, both.may_move) == (False, False, False)
    assert "anna" in both.why
    assert f"also scale-out paused by annotation {PAUSED}-scale-out" in both.why
    now_us[0] = 50
    assert reader.current() == annotated_hold(annotations, 1, 4)[0], "the command's hold has ended"
    annotations[PAUSED] = "perhaps"
    assert "'perhaps' must be true or false" in reader.problem
    annotations.clear()
    assert reader.restriction() is None
