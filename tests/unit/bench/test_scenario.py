"""A valid scenario file becomes values. All errors of an invalid file are reported together."""

from pathlib import Path

import pytest

from bench.scenario import load_scenario, scenario_names
from contracts.membership import ReplicaSpeeds
from contracts.rebalance_protocol import RUNTIMES
from contracts.validation import InvalidSettingsError, from_environment
from loadgen.schedule import Spacing
from loadgen.spec import Topology

GOOD = """
duration_s = 60
[load]
workload = "w1"
split = "random"
[payment]
partitions = 5
[autoscaler]
policy = "algorithm-2"
"""


def write(folder: Path, text: str) -> str:
    path = folder / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


def problems_of(name_or_path: str, overrides: dict[str, object] | None = None) -> list[str]:
    with pytest.raises(InvalidSettingsError) as wrong:
        load_scenario(name_or_path, overrides)
    return wrong.value.problems


@pytest.mark.parametrize("name", scenario_names())
def test_every_scenario_that_is_delivered_can_be_run(name: str) -> None:
    scenario = load_scenario(name)
    assert scenario.name == name
    assert len(scenario.load_spec().schedule()) > 0


def test_what_a_file_leaves_out_follows_from_its_name_and_workload(tmp_path: Path) -> None:
    path = write(tmp_path, '[load]\nworkload = "w1-skew9"\nsplit = "table"\n')
    scenario = load_scenario(path)
    assert (scenario.name, scenario.duration_s, scenario.payment.partitions) == ("own", 600, 9)
    assert (scenario.topology, scenario.autoscaler.policy) == (Topology.PAYMENT_ONLY, "tail-aware")
    assert (scenario.load.spacing, scenario.target.latency_target_s) == (Spacing.BURST, 0.5)


def test_a_table_set_has_keys_of_any_section(tmp_path: Path) -> None:
    found = load_scenario(
        write(tmp_path, 'set = { workload = "50 for 20, to 80 in 10", startup_s = 3, partitions = 7 }\n')
    )
    assert (found.duration_s, found.simulation.startup_s, found.payment.partitions) == (30, 3, 7)
    wrong = problems_of(write(tmp_path, 'set = { workload = "w1", startup = 3 }\n'))
    assert wrong[0].startswith("own.toml: set.startup: unknown; did you mean simulation.startup_s?")


def test_lengths_of_time_take_a_unit_in_files_and_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD + '[target]\nlatency_target_s = "200ms"\n')
    assert load_scenario(path).target.latency_target_s == 0.2
    changed = load_scenario(
        "w1", {"latency_target_s": "1s", "duration_s": "5m", "failures_s": ["2m", "150s"], "max_replicas": 3}
    )
    assert (changed.target.latency_target_s, changed.duration_s) == (1.0, 300)
    assert changed.simulation.failures_s == (120.0, 150.0)


def test_overrides_are_put_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    scenario = load_scenario(
        path, {"autoscaler.policy": "linear", "seed": 9, "rebalance_time_s": 2.0, "target.percentile": 0.9}
    )
    assert (scenario.autoscaler.policy, scenario.seed) == ("linear", 9)
    assert (scenario.autoscaler.rebalance_time_s, scenario.target.percentile) == (2.0, 0.9)


def test_an_override_is_checked_as_the_file_is(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    for key, near in (("polcy", "autoscaler.policy"), ("startup", "simulation.startup_s")):
        (problem,) = problems_of(path, {key: 1})
        assert problem.startswith(f"--set {key}: unknown; did you mean {near}")
        assert problem.endswith(f"? `tailpack show setting {key}` lists similar ones")
    assert problems_of(path, {"seed": "many"}) == ["--set seed = 'many': Expected `int`, got `str`"]


def test_five_errors_are_five_problems_each_with_file_and_key(tmp_path: Path) -> None:
    text = (
        GOOD.replace("duration_s = 60", "duration_s = 601")  # a contradiction
        .replace('"w1"\n', '"w1"\nspeed = 2\nspacing = "bursts"\n')  # an unknown key, an unknown word
        .replace("partitions = 5", 'partitions = "five"')  # a wrong type
        .replace('"algorithm-2"', '"algorithm-7"')  # an unknown policy
    )
    starts = (
        "load.speed: unknown",
        "load.spacing = 'bursts': unknown; did you mean burst?",
        "payment.partitions = 'five': Expected `int`, got `str`",
        "duration_s: 601 is too long: w1 ends at 600 s",
        "autoscaler.policy: 'algorithm-7' is unknown; did you mean algorithm-2?",
    )
    problems = problems_of(write(tmp_path, text))
    assert len(problems) == len(starts)
    assert all(problem.startswith(f"own.toml: {start}") for problem, start in zip(problems, starts, strict=True))


@pytest.mark.parametrize(
    ("name", "settings"),
    [("shared-limit", "shared_limits"), ("late-sight", "observation_delay_s, simulation.observation_loss")],
)
def test_a_live_run_rejects_settings_that_only_a_simulation_supports(name: str, settings: str) -> None:
    with pytest.raises(InvalidSettingsError) as wrong:
        load_scenario(name).for_live()
    assert len(wrong.value.problems) == 1
    assert wrong.value.problems[0].startswith(f"{name}: simulation.{settings}: ")


def test_live_a_led_runtime_is_a_java_consumer_that_the_autoscaler_leads() -> None:
    settings = load_scenario("w1", {"runtime": "led-eager", "commit_interval_s": 0.4}).for_live().autoscaler_settings()
    assert (settings["RUNTIME"], settings["CONSUMERS"], settings["COMMIT_AGE_S"]) == ("", "led", "0.2")
    own = load_scenario("w1", {"runtime": "range"}).for_live().autoscaler_settings()
    assert (own["RUNTIME"], own["CLIENT"], own.get("CONSUMERS")) == ("range", "java", None)


def test_live_a_rebalance_protocol_that_names_a_runtime_means_that_runtime() -> None:
    for runtime in RUNTIMES:
        live = load_scenario("w1", {"rebalance_protocol": runtime, "policy": "linear"}).for_live().payment
        assert (live.rebalance_protocol, live.runtime) == ("incremental", runtime)
    ours = load_scenario("w1", {"rebalance_protocol": "eager"})
    assert ours.for_live() == ours


@pytest.mark.parametrize("name", ["slow-replica", "two-speeds"])
def test_a_scenario_with_different_replica_speeds_runs_live(name: str) -> None:
    settings = load_scenario(name).for_live().autoscaler_settings()
    environ = {f"TAILPACK_{key}": value for key, value in settings.items()}
    found = from_environment(environ, ReplicaSpeeds)
    assert found == load_scenario(name).speeds() != ReplicaSpeeds()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"simulation.split": "table"}, "--set simulation.split: 'table' does not fit w1"),
        ({"slow_from_s": 9, "slow_until_s": 5}, "--set simulation.slow_until_s = 5.0: "),
        ({"failures_s": [600]}, "--set simulation.failures_s: 600 "),
    ],
)
def test_invalid_settings_of_a_simulation_are_named(changes: dict[str, object], problem: str) -> None:
    assert problems_of("w1", changes)[0].startswith(problem)
