"""A broker's host vanishes without closing its connections: its clients switch to another broker in time."""

from pathlib import Path

import pytest
from cluster_helpers import bootstrap, coordinator_of, proxied_cluster, wait_until_whole
from confluent_kafka.admin import NewTopic
from kafka_helpers import admin, create_topics, wait_for
from payment_group import PaymentGroup
from payment_load import PaymentLoad, assert_in_order

from contracts.clock import now_us
from contracts.topics import Group, Topic, qualified

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 6
RATE = 60
NAMES = ["payment-0", "payment-1"]
OWNERS = {partition: NAMES[partition % 2] for partition in range(PARTITIONS)}
SESSION_S = 6.0
PROMISED_S = SESSION_S + 1
REPLICAS_S = 2.0
"""The replicas' share of it; the brokers need the rest to notice, and longer on a busy machine."""
NODES = (1, 2, 3)


def lay_out(kafka: str, namespace: str) -> None:
    """Create the topics of Payment, with leaders on all nodes in turn and a copy on each node."""
    first = [NODES[at % len(NODES)] for at in range(PARTITIONS)]
    copies = [[leader, *(node for node in NODES if node != leader)] for leader in first]
    topics = [
        NewTopic(qualified(namespace, topic), num_partitions=PARTITIONS, replica_assignment=copies)
        for topic in (Topic.PAYMENTS_REQUESTED, Topic.PAYMENTS_SETTLED)
    ]
    client = admin(kafka)  # must outlive its answers
    for made in client.create_topics(topics).values():
        made.result(60)


def test_the_group_continues_after_the_host_of_its_coordinator_has_vanished(tmp_path: Path, namespace: str) -> None:
    with proxied_cluster(tmp_path / "cluster") as cluster:
        kafka = bootstrap(cluster.broker)
        gone = coordinator_of(cluster.broker, qualified(namespace, Group.PAYMENT))  # it leads partitions too
        lay_out(kafka, namespace)
        create_topics(kafka, namespace, PARTITIONS)
        wait_until_whole(cluster.broker)
        with PaymentGroup(kafka, namespace, PARTITIONS, tmp_path, session_s=SESSION_S) as group:
            group.plan(NAMES, OWNERS)
            group.start(*NAMES)
            group.wait_for_owners(OWNERS)
            with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
                wait_for(lambda: len(load.orders) > 2 * RATE, "the load runs")
                assert coordinator_of(cluster.broker, group.group) == gone
                gone_us = now_us()
                cluster.vanish(gone)
                # New clients do not use its address.
                addresses = cluster.broker.addresses
                group.kafka = load._kafka = ",".join(addresses[node] for node in NODES if node != gone)

                wait_for(lambda: now_us() > gone_us + 1e6 * (PROMISED_S + SESSION_S), "two sessions are over")
                load.finish()
                wait_for(lambda: not load.unserved(), "every event is served", every_s=1.0)
                settled = load.settled()
                assert_in_order(settled)
                for partition in range(PARTITIONS):
                    since = (one for one in settled if one.timeline.partition == partition)
                    first = min(
                        (one for one in since if one.timeline.placed_us > gone_us), key=lambda one: one.timeline.done_us
                    )
                    served_s = (first.timeline.done_us - gone_us) / 1e6
                    taken_s = (load.acknowledged_us[first.order_id] - gone_us) / 1e6
                    print(f"partition {partition}: taken after {taken_s:.2f} s, served after {served_s:.2f} s")  # noqa: T201  # pytest -s
                    assert served_s <= max(PROMISED_S, taken_s + REPLICAS_S)
                cluster.come_back(gone)
