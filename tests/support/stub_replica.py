"""A replica that only reports: warm, then member while a plan names it, then drained.

STUB_DEAF_TO="payment-1:2": replica payment-1 reads plans 1 and 2, but does not adopt them.

Tests of the autoscaler start it in place of services.payment, because it is faster.
"""

import os
import signal
import sys
import threading
import time
from contextlib import suppress

import msgspec
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from contracts.plan import PlanRecord
from contracts.progress import Progress, ReplicaState
from contracts.topics import Topic, qualified


def main() -> int:
    name, namespace = os.environ["TAILPACK_REPLICA"], os.environ.get("TAILPACK_NAMESPACE", "")
    kafka = {"bootstrap.servers": os.environ["TAILPACK_BOOTSTRAP_SERVERS"]}
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    producer = Producer(kafka)
    plans = Consumer(kafka | {"group.id": "stub", "enable.auto.commit": False, "isolation.level": "read_committed"})
    plans.assign([TopicPartition(qualified(namespace, Topic.PLANS), 0, 0)])
    deaf, _, deaf_to = os.environ.get("STUB_DEAF_TO", "").partition(":")
    assigned = 0
    epoch, state = 0, ReplicaState.WARM
    owned: tuple[int, ...] = ()
    incarnation = str(time.time_ns())
    while not stop.wait(0.1):  # librdkafka's own waits are cut by the wall clock, and last as long as it is set back
        record = plans.poll(0)
        if record is not None and record.error() is None:
            plan = msgspec.json.decode(record.value(), type=PlanRecord)
            epoch = plan.epoch
            assigned = assigned if deaf == name and epoch <= int(deaf_to) else epoch
            if name in plan.replicas:
                state = ReplicaState.MEMBER
            elif state is ReplicaState.MEMBER:
                state = ReplicaState.DRAINED
            owned = tuple(at for at, owner in (plan.assignment or {}).items() if owner == name)
        in_group = state in (ReplicaState.WARM, ReplicaState.MEMBER)
        report = Progress(
            replica=name, incarnation=incarnation, pid=os.getpid(),
            member_id=f"member-{name}-{incarnation}" if in_group else "", generation=epoch if in_group else -1,
            epoch=epoch, assigned_epoch=assigned, state=state, partitions=owned, positions={}, processed=0, busy_us=0,
            rebalances=0, at_us=time.time_ns() // 1000,
        )  # fmt: skip
        with suppress(KafkaException):  # the topic may be deleted, or not yet be known again: the next one comes soon
            producer.produce(qualified(namespace, Topic.PROGRESS), msgspec.json.encode(report), key=name)
        producer.poll(0)
    producer.flush(2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
