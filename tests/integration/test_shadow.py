"""An autoscaler that only observes a plain confluent-kafka group on a real Kafka: it changes nothing in the group."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from foreign_group import ForeignGroup
from journal_entries import entries
from kafka_helpers import DEADLINE_S, admin, create_topics, read_all, wait_for
from tailpack_command import tailpack

from autoscaler.live.plan_log import PlanLog
from contracts.connection import Connection
from contracts.plan import PlanRecord, plan_key
from contracts.topics import ScaledGroup, Topic
from tailpack.local.ports import free_port

pytestmark = pytest.mark.kafka


class Shadow:
    """The process, and its metrics."""

    def __init__(self, process: "subprocess.Popen[str]", port: int) -> None:
        self.process, self._port = process, port

    def metrics(self) -> dict[str, float]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=DEADLINE_S) as answer:
            found = re.findall(r"^tailpack_(?:shadow_)?(\S+) (\S+)$", answer.read().decode(), re.MULTILINE)
        return {name: float(value) for name, value in found}

    def when(self, name: str, least: float) -> dict[str, float]:
        return wait_for(lambda: (seen := self.metrics()).get(name, 0) >= least and seen, f"{name} of {least}")


@contextmanager
def shadow(
    kafka: str, topic: str, group: str, folder: Path, outputs: list[str], *, more: str = "", command: str = "shadow"
) -> Iterator[Shadow]:
    """The command, with a file of settings; the environment goes first."""
    port = free_port()
    config = folder / "shadow.toml"
    config.write_text(
        f'bootstrap_servers = "{kafka}"\ntopic = "{topic}"\ngroup = "another"\npolicy = "tail-aware"\n'
        f"http_port = {port}\nstartup_s = 1\n{more}\n[policy_options]\nkeep_s = 5\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "tailpack", command, str(config)],
        env=os.environ | {"TAILPACK_GROUP": group},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    running = Shadow(process, port)
    try:
        wait_for(lambda: _serves(running), "the shadow's pages")
        yield running
    finally:
        process.send_signal(signal.SIGTERM)
        outputs += process.communicate(timeout=DEADLINE_S)


def _serves(running: Shadow) -> bool:
    assert running.process.poll() is None, running.process.communicate()
    try:
        return bool(running.metrics())
    except OSError:
        return False


def committed(client: AdminClient, group: str) -> dict[int, int]:
    answer = client.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(DEADLINE_S)
    return {place.partition: place.offset for place in answer.topic_partitions}


def members(client: AdminClient, group: str) -> set[str]:
    described = client.describe_consumer_groups([group])[group].result(DEADLINE_S)
    return {one.member_id for one in described.members}


def test_the_shadow_observes_a_plain_group_without_changes(kafka: str, namespace: str, tmp_path: Path) -> None:
    outputs, client = list[str](), admin(kafka)
    plain = ForeignGroup(kafka, f"{namespace}-shipping", tmp_path / "group", partitions=4, rate=320, work_s=0.01)
    with plain:
        group, topic = plain.name, plain.topic
        plain.start("first", "second")
        plain.load()
        wait_for(lambda: len({*plain.owners().values()}) == 2 and plain.handled(), "both members at work")
        there = members(client, group)
        topics = set(client.list_topics(timeout=DEADLINE_S).topics)
        with shadow(kafka, topic, group, tmp_path, outputs) as running:
            began_s, began = time.monotonic(), len(plain.handled())
            seen = running.when("watched_seconds", 3)
            each = (len(plain.handled()) - began) / (time.monotonic() - began_s) / 2
            assert seen["service_rate_events_per_second"] == pytest.approx(each, rel=0.3)
            assert seen['replicas{of="group"}'] == 2
            ahead = running.when('replicas{of="would_be"}', 3)
            assert running.when('lag_seconds{of="group"}', 1), "two do not keep up"
            assert ahead['replica_minutes{of="group"}'] == pytest.approx(2 * ahead["watched_seconds"] / 60)
            plain.unload()
            plain.stop("first", "second")
            left = committed(client, group)
            assert members(client, group) == set()
            ticks = sum(value for name, value in running.metrics().items() if name.startswith("decisions_total"))
            wait_for(
                lambda: sum(v for n, v in running.metrics().items() if n.startswith("decisions_total")) > ticks + 2,
                "more ticks",
            )
            assert committed(client, group) == left
            assert members(client, group) == set()
        assert len(there) == 2
        assert set(client.list_topics(timeout=DEADLINE_S).topics) == topics, "no topic of ours was made"
        summary, errors = outputs
        assert running.process.returncode == 0, errors
        assert f"{group} on {topic}, " in summary
        assert "replica-minutes" in summary
        assert "Traceback" not in errors


def test_a_proposal_is_only_a_count_and_never_replaces_an_autoscaler_that_acts(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    outputs, client = list[str](), admin(kafka)
    create_topics(kafka, namespace, 4)
    plain = ForeignGroup(kafka, f"{namespace}-shipping", tmp_path / "group", partitions=4, rate=40, work_s=0.01)
    more = f'namespace = "{namespace}"\nact = "propose"\nmember_rate = 10'
    with plain:
        plain.start("first")
        plain.load()
        wait_for(plain.handled, "the member at work")
        with shadow(kafka, plain.topic, plain.name, tmp_path, outputs, more=more, command="autoscale") as running:
            plan = wait_for(lambda: newest_plan(kafka, namespace, 4), "a proposal")
            assert plan.assignment is None
            running.when("watched_seconds", 2)
            assert len(members(client, plain.name)) == 1, "nothing was started, and nobody joined"
        ticks = entries(record.value() for record in read_all(kafka, namespace, Topic.JOURNAL))
        assert {record.key() for record in read_all(kafka, namespace, Topic.JOURNAL)} == {
            plan_key(plain.name, plain.topic) + b"/would"
        }
        assert all(tick.reason.startswith("would: ") for tick in ticks if not tick.missing)
        log = PlanLog(
            Connection(bootstrap_servers=kafka, namespace=namespace), ScaledGroup(topic=plain.topic, group=plain.name)
        )
        log.write(("a",), dict.fromkeys(range(4), "a"), "of an autoscaler that acts")
        environ = os.environ | {"TAILPACK_GROUP": plain.name}
        refused = tailpack("autoscale", str(tmp_path / "shadow.toml"), deadline_s=60, environ=environ)
        assert (refused.returncode, len(refused.stderr.splitlines())) == (4, 1), refused.stderr
        assert "use act = off" in refused.stderr
        log.write(("a",), None, "it was not fenced")


def newest_plan(kafka: str, namespace: str, count: int) -> PlanRecord | None:
    plans = [msgspec.json.decode(one.value(), type=PlanRecord) for one in read_all(kafka, namespace, Topic.PLANS)]
    return plans[-1] if plans and plans[-1].count == count else None
