"""The preflight names a missing topic or a wrong number of partitions, with the remedy."""

from types import SimpleNamespace
from typing import Any

import pytest

from contracts.preflight import TopicNeed, _problem


class Kafka:
    """Topics by name, with their numbers of partitions."""

    topics = {"requests": 11, "orders": 4}  # noqa: RUF012

    def list_topics(self, name: str, **_: Any) -> Any:
        missing = None if name in self.topics else SimpleNamespace(str=lambda: "unknown topic")
        found = SimpleNamespace(error=missing, partitions=range(self.topics.get(name, 0)))
        return SimpleNamespace(topics={name: found})


@pytest.mark.parametrize(
    ("topic", "need", "problem"),
    [
        ("requests", TopicNeed(), ""),
        ("requests", TopicNeed(11), ""),
        ("requests", TopicNeed(9, may_grow=True), ""),
        ("requests", TopicNeed(9), "topic requests on kafka has 11 partitions, not 9; create"),
        ("orders", TopicNeed(5, may_grow=True), "topic orders on kafka has 4 partitions, not 5; create"),
        ("plans", TopicNeed(remedy="run it"), "topic plans cannot be used on kafka (unknown topic); run it"),
    ],
)
def test_a_topic_fits_or_the_problem_names_the_remedy(topic: str, need: TopicNeed, problem: str) -> None:
    found = _problem(Kafka(), "kafka", {"orders": TopicNeed(), topic: need}, [])  # type: ignore[arg-type]
    assert found.startswith(problem)
    assert bool(found) == bool(problem)
