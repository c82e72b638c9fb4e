"""A contradictory load is refused."""

import msgspec
import pytest

from loadgen.spec import LoadSpec


def load(**changes: object) -> LoadSpec:
    base = {
        "topology": "payment-only",
        "workload": "w1",
        "spacing": "burst",
        "split": "random",
        "duration_s": 600,
        "partitions": 5,
        "latency_target_s": 0.5,
    }
    return msgspec.json.decode(msgspec.json.encode(base | changes), type=LoadSpec)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"duration_s": 601}, "duration_s: 601 is too long: w1 ends at 600 s"),
        ({"workload": "w1-skew9", "partitions": 9}, "split: 'random' contradicts the partition table"),
        ({"workload": "w1-skew9", "split": "table"}, "partitions: 5 contradicts w1-skew9, which is made for 9"),
        (
            {"workload": "w1-skew9", "split": "table", "partitions": 9, "partitioner": "kg"},
            "partitioner: 'kg' would ignore",
        ),
    ],
)
def test_a_contradiction_is_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        load(**changes)
    assert problem in str(error.value)
