"""A broker's host vanishes without a word, as when a cable is pulled: whoever waits for it asks another one in time."""

from pathlib import Path

import pytest
from cluster_helpers import bootstrap, coordinator_of, proxied_cluster, wait_until_whole
from kafka_helpers import create_topics, wait_for
from payment_group import PaymentGroup
from payment_load import PaymentLoad, assert_in_order, longest_silence_s

from contracts.clock import now_us

pytestmark = [pytest.mark.kafka, pytest.mark.long]

PARTITIONS = 6
RATE = 60
NAMES = ["payment-0", "payment-1"]
OWNERS = {partition: NAMES[partition % 2] for partition in range(PARTITIONS)}
SESSION_S = 6.0
PATIENCE_S = 2 * (SESSION_S + 1)
"""Promised is a session and a second; the rest is for a machine with other work."""


def test_the_group_serves_on_although_the_host_of_its_coordinator_vanishes(tmp_path: Path, namespace: str) -> None:
    with proxied_cluster(tmp_path / "cluster") as cluster:
        kafka = bootstrap(cluster.broker)
        create_topics(kafka, namespace, PARTITIONS)
        wait_until_whole(cluster.broker)
        with PaymentGroup(kafka, namespace, PARTITIONS, tmp_path, session_s=SESSION_S) as group:
            group.plan(NAMES, OWNERS)
            group.start(*NAMES)
            group.wait_for_owners(OWNERS)
            with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
                wait_for(lambda: len(load.orders) > 2 * RATE, "the load runs")
                node = coordinator_of(cluster.broker, group.group)
                gone_us = now_us()
                cluster.vanish(node)
                others = ",".join(address for one, address in cluster.broker.addresses.items() if one != node)
                group.kafka = load._kafka = others  # who asks anew need not know of it

                wait_for(lambda: now_us() > gone_us + 2e6 * PATIENCE_S, "it is gone for long", deadline_s=60.0)
                load.finish()
                wait_for(lambda: not load.unserved(), "every event is served", deadline_s=60.0, every_s=1.0)
                settled = load.settled()
                assert_in_order(settled)
                silences_s = {
                    partition: longest_silence_s([one for one in settled if one.timeline.partition == partition])
                    for partition in range(PARTITIONS)
                }
                print(f"longest silence of a partition {max(silences_s.values()):.1f} s: {silences_s}")  # noqa: T201  # pytest -s
                assert max(silences_s.values()) < PATIENCE_S
                cluster.come_back(node)
