"""A contradictory load is refused."""

import msgspec
import pytest

from loadgen.schedule import Spacing, Split
from loadgen.spec import LoadSpec, Topology
from partitioners import Partitioner


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


def test_a_load_is_equal_after_its_json_file() -> None:
    spec = load(seed=3, partitioner="key")
    assert spec.topology is Topology.PAYMENT_ONLY
    assert (spec.spacing, spec.split, spec.partitioner) == (Spacing.BURST, Split.RANDOM, Partitioner.KG)
    assert msgspec.json.decode(msgspec.json.encode(spec), type=LoadSpec) == spec


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"duration_s": 601}, "duration_s: 601 is too long: w1 ends at 600 s"),
        ({"workload": "w1-skew9", "partitions": 9}, "split: 'random' contradicts the partition table"),
        ({"workload": "w1-skew9", "split": "table"}, "partitions: 5 contradicts w1-skew9, which is made for 9"),
        (
            {"workload": "w1-skew9", "split": "table", "partitions": 9, "partitioner": "key"},
            "partitioner: 'kg' would ignore",
        ),
        ({"invalid_share": 0.1}, "invalid_share: must be 0 in payment-only runs"),
    ],
)
def test_a_contradiction_is_named(changes: dict[str, object], problem: str) -> None:
    with pytest.raises(msgspec.ValidationError) as error:
        load(**changes)
    assert problem in str(error.value)
