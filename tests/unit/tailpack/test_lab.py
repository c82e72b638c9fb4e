"""The laboratory: its figures are those of the product, and wrong names get the nearest right one."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from bench.scenario import load_scenario
from bench.simulation.folder import write_run
from bench.simulation.run import run_scenario
from bench.simulation.sent_events import build_events
from tailpack import lab
from tailpack.errors import TailpackError
from tailpack.provenance import describe_simulated

SHORT = {"duration_s": 90}


class Three:
    """Three replicas."""

    def decide(self, observation: Any) -> Any:
        return lab.scale_to(observation, 3, "payment", "three")


def test_the_figures_of_a_run_are_those_of_the_simulator_and_of_the_report(tmp_path: Path) -> None:
    run = lab.simulate("w1", policy="linear", seed=3, startup_s=10, **SHORT)
    settings = {"autoscaler.policy": "linear", "seed": 3, "startup_s": 10, **SHORT}
    scenario = load_scenario("w1", settings)
    sent = build_events(scenario)
    simulated, figures = run_scenario(scenario, sent)
    info = describe_simulated(scenario, sent, simulated.drained_us, tmp_path)
    folder = write_run(tmp_path / "run", simulated, info)
    stored = lab.read(folder)

    assert (run.in_time, run.replica_minutes) == (figures.in_sla, figures.replica_minutes)
    assert run.late == round((1 - figures.in_sla) * figures.events) > 0
    other = {"run": "", "provenance": run.result.provenance}
    assert msgspec.structs.replace(stored.result, **other) == msgspec.structs.replace(run.result, **other)
    assert run.events["latency_s"].max() == pytest.approx(figures.max_s)
    assert np.array_equal(stored.events["partition"], run.events["partition"])


def test_every_picture_of_a_run_is_drawn() -> None:
    run = lab.simulate("w1-skew9", policy="linear", **SHORT)
    for drawn in (run.timeline(), run.partitions(), run.latency(), run.decisions(), lab.burst(20, 200, 0.05).picture()):
        assert drawn._repr_png_().startswith(b"\x89PNG")


def test_the_last_decision_at_a_time_has_its_alternatives() -> None:
    run = lab.simulate("spike", policy="linear", duration_s=30)
    assert run.decision(at=10.5).at_us <= 10.5e6
    assert run.decision(at=10.9).tick == run.decision(at=10.5).tick > run.decision(at=9).tick
    with pytest.raises(ValueError, match="no decision was made before -1 s"):
        run.decision(at=-1)


@pytest.mark.parametrize(
    ("settings", "nearest"),
    [
        ({"startup": 3}, "did you mean startup_s"),
        ({"policy": "keda-hpa", "lag_treshold": 3}, "did you mean lag_threshold"),
        ({"policy": "lineer"}, "did you mean linear"),
        ({"startup_s": -3}, "simulation.startup_s = -3: must be at least 0"),
    ],
)
def test_a_wrong_setting_names_the_nearest(settings: dict[str, Any], nearest: str) -> None:
    with pytest.raises(ValueError, match=nearest):
        lab.simulate("w1", **settings)


def test_policies_are_compared_by_name_class_and_options() -> None:
    found = lab.compare("w1", ["linear", Three, ("keda-hpa", {"lag_threshold": 20}), "static-3"], seeds=1, **SHORT)
    assert list(found.points) == ["linear", "three", "keda-hpa, lag_threshold=20", "static-3"]
    assert found.points["linear"] == (lab.simulate("w1", policy="linear", **SHORT).in_time, pytest.approx(1.5, abs=0.6))
    assert found.points["three"][1] == pytest.approx(4.5, abs=0.1)
    assert "| `three` |" in found._repr_markdown_()
    assert found.front()._repr_png_()


def test_a_class_cannot_take_the_name_of_our_policy() -> None:
    class Linear:
        def decide(self, observation: Any) -> Any: ...

    with pytest.raises(ValueError, match="another `name`"):
        lab.simulate("w1", policy=Linear)


@pytest.mark.parametrize(("events", "rate", "target_s"), [(160, 200, 0.5), (99, 100, 0.5), (7, 40, 0.1)])
def test_a_burst_is_served_as_by_the_simulator(events: int, rate: int, target_s: float) -> None:
    settings = {"workload": f"{events} for 3", "duration_s": 1, "partitions": 1, "max_replicas": 1}
    run = lab.simulate("step", policy="static-1", service_time_s=1 / rate, latency_target_s=target_s, **settings)
    assert run.late == lab.burst(events, rate, target_s).late
    assert run.events["latency_s"] == pytest.approx(lab.burst(events, rate, target_s).done_s, abs=1e-5 * events)


def test_a_second_replica_takes_every_other_event_from_its_start_on() -> None:
    served = lab.burst(100, 100, 0.5, second_at_s=0.2)
    assert served.done_s.max() == pytest.approx(0.6)
    assert (lab.burst(100, 100, 0.5).late, served.late) == (50, 20)


def test_only_kg_keeps_each_key_on_one_worker() -> None:
    assert {name: lab.spread(name, events=5_000)["memory"] == 1 for name in ("kg", "pkg", "sg")} == {
        "kg": True, "pkg": False, "sg": False,
    }  # fmt: skip
    with pytest.raises(ValueError, match="did you mean sticky_split"):
        lab.spread("sticky")


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: lab.compare("w1", []), "at least one policy"),
        (lambda: lab.compare("w1", [""]), "no empty name"),
        (lambda: lab.spread("kg", events=0), "must be positive"),
        (lambda: lab.burst(9, 9, 0.5, spread_s=np.inf), "spread_s 0 or finite"),
        (lambda: lab.live("smoke", kill="payment-1@soon"), r"write for example payment-1@20"),
    ],
)
def test_an_impossible_argument_is_one_sentence(call: Any, problem: str) -> None:
    with pytest.raises((ValueError, TailpackError), match=problem):
        call()


def test_a_live_run_needs_a_policy_that_other_processes_can_load() -> None:
    with pytest.raises(TailpackError, match=r"path\.py:Class"):
        lab.live("smoke", policy=Three)
