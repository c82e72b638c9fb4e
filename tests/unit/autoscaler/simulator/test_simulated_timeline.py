"""Tests of the timeline of a simulated run."""

from unit.autoscaler.builders import Wants
from unit.autoscaler.simulator.worlds import workload_of

from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import SimulationSettings
from autoscaler.simulator.timeline import timeline

EPOCH_US = 1_700_000_000_000_000
EVENTS = [(0, 1), (0, 0), (10, 1), (1500, 1)]


def test_each_event_is_a_row_with_its_times_its_place_and_the_plan_in_force():
    rows = timeline(simulate(workload_of(EVENTS), Wants(2), SimulationSettings()), EPOCH_US)
    assert {len(values) for values in rows.values()} == {4}
    assert (rows["done_us"] - EPOCH_US).tolist() == [5000, 10_000, 15_000, 1_505_000]
    assert (rows["received_us"] - EPOCH_US).tolist() == [0, 5000, 10_000, 1_500_000]
    assert rows["partition"].tolist() == [1, 0, 1, 1]
    assert rows["offset"].tolist() == [0, 0, 1, 2]
    assert rows["epoch"].tolist() == [1, 1, 1, 2], "the first decision is at 0.1 s"
    assert set(rows["replica"]) == {"payment-0"}
    assert len(set(rows["event_id"])) == 4
    assert rows["requested_records"].tolist() == rows["settled_records"].tolist() == [1, 1, 1, 1]
    assert rows["accepted_us"].tolist() == [None] * 4
