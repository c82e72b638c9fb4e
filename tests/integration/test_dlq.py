"""`tailpack dlq` lists, shows and replays dead letters, on a real Kafka."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import command_line
import msgspec
import pytest
from click.testing import Result
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic
from kafka_helpers import DEADLINE_S, read_all
from plan_consumers import Playground, running, until
from typer.testing import CliRunner

from contracts.events import DeadLetter
from services.consumer import Event, PlanConsumer
from tailpack.cli import dlq, options
from tailpack.cli.main import app, main
from tailpack.errors import TailpackError

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(180)]

CARD = b'{"order_id": "o-1", "card": "4111 1111 1111 1111", "text": "\x1b[31m"}'
BINARY = b"\xff\xfe\x00" * 500_000
"""Larger than brokers accept, unless it is packed."""


class Office:
    """A group that refuses everything, and the letters about it."""

    def __init__(self, kafka: str, name: str) -> None:
        self.ground = Playground(kafka, name, 3)
        self.events, self.letters = self.ground.topics.events, f"{name}.dead"
        self.ground.admin.create_topics([NewTopic(self.letters, 2)])[self.letters].result(DEADLINE_S)
        packed = {"compression.type": "gzip", "message.max.bytes": 100_000_000}
        self.producer = Producer({"bootstrap.servers": kafka, **packed})

    def run(self, command: str, *words: str) -> Result:
        return command_line.run("dlq", command, self.letters, *words, "--bootstrap-servers", self.ground.kafka)

    def put(self, topic: str, value: bytes, partition: int = 0, **more: Any) -> str:
        """Write a record, and return its ID."""
        written: list[str] = []
        note = lambda _, record: written.append(f"{record.partition()}:{record.offset()}")  # noqa: E731
        self.producer.produce(topic, value, partition=partition, on_delivery=note, **more)
        assert self.producer.flush(DEADLINE_S) == 0
        return written[0]

    def letter(self, **changes: Any) -> str:
        """Write a letter about the event in partition 1, with changes, and return its ID."""
        found = read_all(self.ground.kafka, "", self.letters)
        known = (
            msgspec.json.decode(one.value(), type=DeadLetter)
            for one in found
            if b"payload_hash" in (one.value() or b"")
        )
        about = next(one for one in known if one.partition == 1)
        return self.put(self.letters, msgspec.json.encode(msgspec.structs.replace(about, **changes)))

    def replayed(self) -> list[Any]:
        found = read_all(self.ground.kafka, "", self.events)
        return [one for one in found if dlq.REPLAYED_FROM in dict(one.headers() or ())]


@pytest.fixture
def office(kafka: str, namespace: str) -> Office:
    """Two events were refused, in partitions 1 and 2."""
    made, tried = Office(kafka, namespace), set[int]()

    async def refuse(event: Event) -> None:
        tried.add(event.partition)
        raise ValueError(f"no such merchant in partition {event.partition}")

    async def story() -> None:
        topics = replace(made.ground.topics, dead_letters=made.letters, stage="shop")
        async with running(PlanConsumer("one", made.ground.connection, topics, refuse)):
            await until(lambda: tried == {1, 2}, "the group exists")
            await until(lambda: made.ground.committed(1) == made.ground.committed(2) == 1, "both are refused")

    made.put(made.events, CARD, 1, key=b"o-1", headers=[("trace", b"abc"), ("empty", None)])
    made.put(made.events, BINARY, 2)
    asyncio.run(story())
    return made


def test_letters_are_counted_shown_without_card_numbers_and_replayed_once(office: Office) -> None:
    found = json.loads(office.run("list", "--json").stdout)
    first, second = (row["newest"] for row in sorted(found["reasons"], key=lambda row: row["reason"]))
    listed, shown = office.run("list").stdout, office.run("show", first).stdout
    for text in ("2 letters, 0 replayed", f"{office.events}/1", "ValueError: no such merchant in partition 1"):
        assert text in listed
    for text in ("ValueError: no such merchant", "key      o-1", "header  trace = abc", "header  empty = none", "1111"):
        assert text in shown
    assert not [text for text in ("4111", "\x1b") if text in shown + listed]
    assert "34 31 31 31" not in office.run("show", first, "--hex").stdout
    assert office.run("show", second).stdout.splitlines()[-1].startswith("00 ff fe 00 ff")

    assert office.run("replay", first).exit_code
    assert not office.replayed(), "it was not confirmed"
    assert office.run("replay", first, "--yes").stdout == f"1 replayed to {office.events}\n"
    (again,) = office.replayed()
    place = f"{office.letters}/{first.replace(':', '/')}".encode()
    assert (again.partition(), again.key(), again.value()) == (1, b"o-1", CARD)
    assert again.headers() == [("trace", b"abc"), ("empty", None), (dlq.REPLAYED_FROM, place)]
    with pytest.raises(TailpackError, match="replayed before"):
        office.run("replay", first, "--yes")
    twin = office.letter(at_us=1)
    with pytest.raises(TailpackError, match="replayed before"):
        office.run("replay", twin, "--yes")
    office.run("replay", "--all", "--yes")
    assert sorted(one.value() for one in office.replayed()) == [CARD, BINARY], "only the other one"
    office.run("replay", "--reason", "partition 1", "--again", "--yes")
    assert sorted(one.value() for one in office.replayed()) == [CARD, CARD, BINARY]
    assert "3 letters, 3 replayed" in office.run("list").stdout
    assert first in [row["newest"] for row in json.loads(office.run("list", "--json").stdout)["reasons"]]


def test_wrong_letters_are_refused_in_one_line_and_nothing_is_written(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(options, "ANSWER_S", 3.0)
    wrong = {
        "0:999": "no such letter",
        "newest": "write PARTITION:OFFSET",
        office.put(office.letters, b"hello"): "no letter of tailpack",
        office.put(office.letters, bytes(50_000_000), partition=1): "unpacks to more than",
        office.letter(topic=f"{office.events}.gone"): "cannot be used",
        office.letter(partition=7): "has 3 partitions, not 8",
        office.letter(topic=f"{office.ground.name}.autoscaler.plans"): "forged",
    }
    for key, problem in wrong.items():
        for command in (("show", key), ("replay", key, "--yes")):
            with pytest.raises(TailpackError, match=problem) as refused:
                office.run(*command)
            assert len(str(refused.value).splitlines()) == 1
    gone = next(key for key, problem in wrong.items() if problem == "cannot be used")
    words = ["dlq", "show", office.letters, gone, "--bootstrap-servers", office.ground.kafka]
    assert "reason  ValueError: no such merchant" in CliRunner().invoke(app, words).stdout
    with pytest.raises(TailpackError, match="name letters"):
        office.run("replay", "--yes")
    found = json.loads(office.run("list", "--json").stdout)
    assert (found["letters"], found["others"], found["replayed"]) == (5, 2, 0)

    other, gone = office.letter(partition=2), office.letter()
    (deleted,) = office.ground.admin.delete_records([TopicPartition(office.events, 1, 1)]).values()
    deleted.result(DEADLINE_S)
    for key, problem in {other: "not the record that was refused", gone: "does not exist any more"}.items():
        done = office.run("replay", key, "--yes")
        assert (done.exit_code, problem in done.stderr, done.stdout) == (1, True, f"0 replayed to {office.events}\n")
    assert not office.replayed()


def limit(office: Office, size: int = 1000) -> None:
    """Let the brokers refuse the larger record."""
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    changed = ConfigResource(ConfigResource.Type.TOPIC, office.events, incremental_configs=[entry])
    office.ground.admin.incremental_alter_configs([changed])[changed].result(DEADLINE_S)


def take_over(office: Office) -> None:
    other = {"bootstrap.servers": office.ground.kafka, "transactional.id": f"{office.letters}.replay"}
    Producer(other).init_transactions(DEADLINE_S)


def interrupt(_: Office) -> None:
    os.kill(os.getpid(), signal.SIGINT)


def delete(office: Office) -> None:
    office.ground.admin.delete_topics([office.events])[office.events].result(DEADLINE_S)


@pytest.mark.parametrize("cut", [limit, take_over, interrupt, delete])
def test_a_replay_that_is_cut_writes_nothing_and_the_next_one_everything(
    office: Office, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], cut: Callable[[Office], None]
) -> None:
    write, written = dlq._write, list[str]()

    def write_and_cut(producer: Producer, topic: str, key: str, *more: Any) -> None:
        if written:
            producer.flush(DEADLINE_S)  # the brokers have the first record, in an open transaction
            cut(office)
        written.append(key)
        write(producer, topic, key, *more)

    monkeypatch.setattr(dlq, "_write", write_and_cut)
    monkeypatch.setattr(dlq, "ANSWER_S", 5.0)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    words = ["dlq", "replay", office.letters, "--all", "--yes", "--bootstrap-servers", office.ground.kafka]
    monkeypatch.setattr(sys, "argv", ["tailpack", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == (130 if cut is interrupt else 2)
    assert (said.count("tailpack: "), "Traceback" in said) == (1, False)
    monkeypatch.undo()
    assert json.loads(office.run("list", "--json").stdout)["replayed"] == 0
    if cut is delete:
        return
    assert not office.replayed()
    limit(office, 10_000_000)
    assert office.run("replay", "--all", "--yes").stdout == f"2 replayed to {office.events}\n"
    assert sorted(one.value() for one in office.replayed()) == [CARD, BINARY]
