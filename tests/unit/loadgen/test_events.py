"""Records carry what the services expect of them."""

import msgspec
import pytest

from contracts.events import OrderPlaced, PaymentRequested
from contracts.topics import Topic
from loadgen.events import ANY_PARTITION, events, input_topic
from loadgen.orders import Orders
from loadgen.schedule import Spacing, Split
from loadgen.spec import Grouping, LoadSpec, Topology

START_US = 1_700_000_000_000_000


def spec(topology: Topology, grouping: Grouping = Grouping.EXPLICIT) -> LoadSpec:
    return LoadSpec(
        topology=topology,
        workload="smoke",
        spacing=Spacing.SMOOTH,
        split=Split.EVEN,
        grouping=grouping,
        duration_s=2,
        partitions=5,
        latency_target_s=0.5,
    )


def records(load: LoadSpec) -> list:
    made = events(load, load.schedule(), Orders("run", 0), START_US)
    return [event.record(START_US + 7) for event in made]


def test_an_order_carries_its_times_and_its_partition_in_headers() -> None:
    made = records(spec(Topology.PIPELINE))
    assert len(made) == 20
    third = made[3]
    order = msgspec.json.decode(third.value, type=OrderPlaced)
    assert order == Orders("run", 0).order(3)
    assert third.key == order.order_id.encode()
    assert third.partition == ANY_PARTITION, "orders are keyed; the header chooses the payment partition"
    assert dict(third.headers) == {
        "intended_at": b"1700000000300000",
        "placed_at": b"1700000000000007",
        "partition": b"3",
    }


def test_without_explicit_grouping_nobody_is_told_a_partition() -> None:
    assert all("partition" not in dict(made.headers) for made in records(spec(Topology.PIPELINE, Grouping.KEY)))
    assert {made.partition for made in records(spec(Topology.PAYMENT_ONLY, Grouping.KEY))} == {ANY_PARTITION}


def test_a_payment_request_has_its_timeline_and_no_card_number() -> None:
    made = records(spec(Topology.PAYMENT_ONLY))
    request = msgspec.json.decode(made[3].value, type=PaymentRequested)
    assert (request.timeline.intended_us, request.timeline.placed_us) == (START_US + 300_000, START_US + 7)
    assert request.timeline.accepted_us is None
    assert made[3].partition == 3
    assert Orders("run", 0).order(3).card_number.encode() not in made[3].value


@pytest.mark.parametrize(
    ("topology", "topic", "partitions"),
    [(Topology.PIPELINE, Topic.ORDERS_PLACED, 4), (Topology.PAYMENT_ONLY, Topic.PAYMENTS_REQUESTED, 5)],
)
def test_the_load_enters_where_its_topology_begins(topology: Topology, topic: Topic, partitions: int) -> None:
    assert input_topic(spec(topology)) == (topic, partitions)
