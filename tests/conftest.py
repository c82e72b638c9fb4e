"""Fixtures: one real Kafka for the whole test session, and a namespace for each test so that none meets another."""

import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import settings

from tailpack.local.broker import Broker

# The same examples every time, so that a change is judged by what it changes; `--hypothesis-profile=explore` looks for
# others.
# No deadlines: what is compiled takes a second at its first call.
settings.register_profile("same", derandomize=True, deadline=None)
settings.register_profile("explore", deadline=None)
settings.load_profile("same")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of an embedded broker that the whole session shares."""
    broker = Broker(tmp_path_factory.mktemp("kafka"))
    try:
        yield broker.start()
    finally:
        broker.kill()  # its data go too: a clean stop would only take time


@pytest.fixture(scope="session")
def planned_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of a broker with the assignor that reads plans."""
    broker = Broker(tmp_path_factory.mktemp("planned"), is_planned=True)
    try:
        yield broker.start()
    finally:
        broker.kill()


@pytest.fixture
def private_broker(tmp_path: "pytest.TempPathFactory") -> Iterator[Broker]:
    """A broker of the test's own, started: for tests that kill or stop it."""
    broker = Broker(tmp_path / "kafka")  # type: ignore[operator]
    broker.start()
    try:
        yield broker
    finally:
        broker.kill()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Start three nodes. A test that kills a node starts it again."""
    started = Broker(tmp_path_factory.mktemp("cluster"), brokers=3)
    started.start()
    try:
        yield started
    finally:
        for node in started.nodes:
            started.kill(node)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Chromium without a window."""
    from chromium import chromium

    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def namespace() -> str:
    """A fresh prefix for topics and groups."""
    return f"test-{uuid.uuid4().hex[:10]}"


def pytest_sessionfinish() -> None:
    """Spark's JVM is shared by all tests of the process; it ends with them."""
    session = sys.modules.get("report.spark.session")
    if session:
        session.end_jvm()
