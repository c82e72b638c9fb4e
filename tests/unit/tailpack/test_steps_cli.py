"""The steps of a run and values put over a scenario: what the command line makes of them, without Kafka or Spark."""

import pytest
from command_line import run

from tailpack import run as runner
from tailpack.cli import run as run_commands
from tailpack.cli.options import parse_changes
from tailpack.local import topics as topics_of_a_run

REACH = ["--bootstrap-servers", "kafka:9092", "--namespace", "demo"]


def test_topics_are_created_with_the_partitions_of_the_scenario(monkeypatch):
    created = []
    monkeypatch.setattr(topics_of_a_run, "create_topics", lambda *asked: created.append(asked))
    result = run("topics", "create", "demo", *REACH)
    ((connection, *partitions),) = created
    assert result.exit_code == 0
    assert partitions == [9, 4]
    run("topics", "create", "demo", *REACH, "--pipeline-partitions", "8")
    assert created[-1][1:] == (9, 8)
    assert (connection.bootstrap_servers, connection.namespace) == ("kafka:9092", "demo")


class FakeRun:
    """Takes the place of a run and remembers what it was asked for."""

    def __init__(self, scenario, console, out, **options):
        FakeRun.scenario, FakeRun.out, FakeRun.options = scenario, out, options

    def replay(self):
        return self.out / self.options["name"]


def test_the_load_is_the_scenarios_with_what_was_asked_instead(monkeypatch, tmp_path):
    monkeypatch.setattr(runner, "Run", FakeRun)
    result = run(
        *("dev", "load", "demo", *REACH, "--out", str(tmp_path)),
        *("--policy", "linear", "--seed", "7", "--duration", "30s", "--web-ui", "8089"),
    )
    assert result.exit_code == 0
    assert FakeRun.scenario.autoscaler.policy == "linear"
    assert (FakeRun.scenario.seed, FakeRun.scenario.duration_s) == (7, 30)
    assert (FakeRun.options["name"], FakeRun.out, FakeRun.options["web_port"]) == ("demo", tmp_path, 8089)
    assert f"tailpack report {tmp_path / 'demo'}" in result.output.replace("\n", "")


def test_jars_are_fetched_into_the_cache(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(run_commands, "ensure", lambda bundle, announce: asked.append(bundle) or tmp_path)
    result = run("dev", "jars", "spark")
    assert asked == ["spark"]
    assert result.output.replace("\n", "") == str(tmp_path)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("payment.heartbeat_s=3", "payment.heartbeat_s", 3),
        ("rebalance_time_s = 0.5", "rebalance_time_s", 0.5),
        ("learn_rebalance_time=false", "learn_rebalance_time", False),
        ("payment.runtime=cooperative-sticky", "payment.runtime", "cooperative-sticky"),
        ('policy="linear"', "policy", "linear"),
        ("description=a = b", "description", "a = b"),
    ],
)
def test_a_value_is_what_it_looks_like(text: str, key: str, value: object) -> None:
    assert parse_changes([text]) == {key: value}
