"""The overlay `keda` under varying load: the autoscaler decides, and KEDA and the HPA create the pods."""

from collections.abc import Iterator

import msgspec
import pytest
from kafka_helpers import read_all, wait_for
from payment_load import PaymentLoad, repeats
from pods import Deployed

from autoscaler.live.launchers.pods import DELETION_COST, LOWEST_COST, REPLICA
from bench.cluster import MANIFESTS
from contracts.journal import JournalRecord, ReplicaChange, ReplicaChanged
from contracts.plan import PlanRecord
from contracts.topics import Topic

SPACE = "demo"
PARTITIONS = 9
CALM, BUSY = 20, 110
"""Payments/s. The service rate of a replica is 50 payments/s."""


@pytest.fixture
def tailpack(kubernetes: str) -> Iterator[Deployed]:
    """Payment alone, scaled by KEDA."""
    place = Deployed(kubernetes, "keda")
    place.apply(replicas={"order": 0, "shipment": 0, "notification": 0})
    try:
        # what starts made late would keep pods for minutes
        place.kubectl("set", "env", "deployment/autoscaler", 'TAILPACK_POLICY_OPTIONS={"keep_s": 0}')
        place.wait_ready(**{"kafka": 1, "tailpack-keda": 1})
        place.kubectl("rollout", "status", "deployment/tailpack-keda", "--timeout=50s")
        followed = (MANIFESTS / "overlays/keda/scaledobject.yaml").read_text()
        place.kubectl("apply", "-f", "-", stdin=followed.replace(".tailpack:", f".{place.name}:"))
        place.wait_ready(autoscaler=2, payment=1)
        yield place
    finally:
        place.delete()


def test_pods_follow_the_plan_and_only_drained_pods_are_deleted(tailpack: Deployed) -> None:
    kafka = tailpack.broker
    seen: dict[str, dict[str, str]] = {}
    """Pod → its last known annotations."""

    def serving() -> int:
        """Return the replica count of the newest plan, if it is complete and every partition has an owner."""
        for one in tailpack.pods("payment"):
            seen[one["metadata"]["name"]] = one["metadata"].get("annotations", {})
        newest = plans(kafka)[-1]
        assert newest.assignment is not None
        assert set(newest.assignment) == set(range(PARTITIONS))
        assert set(newest.assignment.values()) <= set(newest.replicas)
        return len(newest.replicas) if newest.count == len(newest.replicas) else 0

    wait_for(serving, "a plan is in force", deadline_s=60)
    first = {one["metadata"]["name"] for one in tailpack.pods("payment")}
    with PaymentLoad(kafka, SPACE, rate=BUSY, partitions=PARTITIONS) as load:
        wait_for(lambda: serving() >= 3, "three serve", deadline_s=120, every_s=0.2)
        high = {one["metadata"]["name"] for one in tailpack.pods("payment")}
        assert first < high
        load.interval_s = 1 / CALM
        wait_for(lambda: serving() == len(tailpack.pods("payment")) == 1, "one is enough", deadline_s=180, every_s=0.1)
        (left,) = {one["metadata"]["name"] for one in tailpack.pods("payment")}
    gone = high - {left}
    assert gone
    wait_for(lambda: not load.unserved(), "all are served", deadline_s=60)
    assert repeats(load.settled()) == []
    changes = journal(kafka)
    assert not [one for one in changes if one.change in (ReplicaChange.DIED, ReplicaChange.START_FAILED)]
    drained = {one.replica for one in changes if one.change is ReplicaChange.DRAINED}
    for pod in gone:
        assert seen[pod].get(DELETION_COST) == LOWEST_COST, pod
        assert seen[pod][REPLICA] in drained
    requests = {(one["verb"], one["objectRef"].get("subresource", "")) for one in tailpack.api_requests()}
    assert ("patch", "scale") not in requests
    assert "deployments/scale" not in str(tailpack.get("role", "autoscaler"))


def plans(kafka: str) -> list[PlanRecord]:
    return [msgspec.json.decode(one.value(), type=PlanRecord) for one in read_all(kafka, SPACE, Topic.PLANS)]


def journal(kafka: str) -> list[ReplicaChanged]:
    entries = [msgspec.json.decode(one.value(), type=JournalRecord) for one in read_all(kafka, SPACE, Topic.JOURNAL)]
    return [one for one in entries if isinstance(one, ReplicaChanged)]
