"""Scenarios with stages: their files, their figures, and coordinated and separate scaling."""

import pytest

from bench.scenario import load_scenario
from bench.simulation.chain import run_chain
from bench.simulation.optimum import find_optimum
from bench.simulation.run import run_scenario
from bench.simulation.sent_events import build_events
from contracts.validation import InvalidSettingsError

THIRD = """
[[stages]]
name = "notification"
partitions = 3
service_time_s = 0.001
branching = 0.5
"""


def chain(**changes):
    return load_scenario("chain", {"duration_s": 60, **changes})


def own(tmp_path, text):
    path = tmp_path / "own.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


SHIPMENT = """
[load]
workload = "spike"
[[stages]]
name = "shipment"
partitions = 5
service_time_s = 0.005
share = 0.2
"""


@pytest.mark.long
def test_scaled_as_one_the_longest_latency_is_far_below_that_of_stages_that_see_themselves_only():
    until_the_first_spike = {"duration_s": 165}
    blind = run_chain(chain(coordinated=False, **until_the_first_spike))[1]
    as_one = run_chain(chain(**until_the_first_spike))[1]
    assert blind.stages[0] == as_one.stages[0], "later stages do not affect earlier ones"
    assert as_one.max_s < 0.8 * blind.max_s
    assert as_one.in_sla > blind.in_sla
    assert as_one.replica_minutes < 1.1 * blind.replica_minutes


def test_a_third_stage_and_one_that_gets_nothing(tmp_path):
    scenario = load_scenario(own(tmp_path, SHIPMENT + THIRD), {"duration_s": 30, "stages.notification.branching": 0})
    runs, found = run_chain(scenario)
    assert [one.stage for one in found.stages] == ["payment", "shipment", "notification"]
    assert found.stages[0].in_sla == (runs[0].latency_us <= round((1 - 0.2 - 1 / 3) * 1e6)).mean(), "its share of W"
    assert (found.stages[2].events, found.stages[2].max_s) == (0, None)
    assert scenario.shares() == pytest.approx([1 - 0.2 - 1 / 3, 0.2, 1 / 3])


@pytest.mark.parametrize(
    ("changes", "start"),
    [
        ({"autoscaler.policy": "linear"}, "chain.coordinated: linear"),
        ({"stages.shipment.branching": -1}, "stages[0].branching = -1: must be at least 0, at most 100"),
        ({"stages.shipment.initial_replicas": 9}, "stages[0].initial_replicas = 9: is more than the 5 partitions"),
        ({"autoscaler.min_replicas": 4, "stages.shipment.partitions": 2}, "shipment has 2 partitions, but"),
        ({"stages.shipment.name": "payment"}, "stages: two stages have the name payment"),
    ],
)
def test_each_invalid_setting_of_a_chain_is_one_line(changes, start):
    with pytest.raises(InvalidSettingsError) as wrong:
        chain(**changes)
    assert any(start in problem for problem in wrong.value.problems), wrong.value.problems


def test_each_group_of_a_chain_starts_with_at_least_the_minimum():
    found = chain(**{"autoscaler.min_replicas": 2})
    assert [found.autoscaler.initial_replicas, found.at_stage(0).autoscaler.initial_replicas] == [2, 2]


def test_a_chain_is_rejected_by_the_simulation_of_one_group_the_optimum_and_a_live_run():
    with pytest.raises(InvalidSettingsError, match="stages"):
        run_scenario(chain())
    with pytest.raises(InvalidSettingsError, match="stages"):
        find_optimum(chain(coordinated=False), build_events(chain()))
    with pytest.raises(InvalidSettingsError, match=r"stages.*tailpack autoscale"):
        chain().for_live()
