"""Plans are validated when they are read."""

import msgspec
import pytest

from contracts.plan import PlanRecord
from services.consumer.plan_reader import InvalidPlanError, decode_plan

GOOD = PlanRecord(epoch=4, at_us=1, replicas=("a", "b"), assignment={0: "a", 1: "b"}, reason="because")


def changed(**fields: object) -> bytes:
    return msgspec.json.encode(msgspec.to_builtins(GOOD, str_keys=True) | fields)


def test_a_plan_survives_the_topic():
    assert decode_plan(msgspec.json.encode(GOOD)) == GOOD


def test_unknown_fields_of_a_newer_controller_are_tolerated():
    assert decode_plan(changed(colour="blue")) == GOOD


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"not JSON", "malformed"),
        (b"{}", "epoch"),
        (changed(epoch=0), "epoch 0"),
        (changed(epoch="four"), "epoch"),
        (changed(v=2), "version 2"),
        (changed(assignment={"zero": "a"}), "assignment"),
        (changed(replicas="a"), "replicas"),
    ],
)
def test_what_is_no_plan_is_refused_with_the_reason(value, problem):
    with pytest.raises(InvalidPlanError, match=problem):
        decode_plan(value)
