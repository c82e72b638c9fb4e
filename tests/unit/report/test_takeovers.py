"""A successor is told from a handover: by the journal's deaths, else by what the plans had wanted."""

from contracts.journal import PlanWritten, ReplicaChange, ReplicaChanged
from report.takeovers import NOTICED_WITHIN_US, Deaths, Takeover

TAKEN = Takeover(partition=0, old="a", new="b", left_us=1_000, came_us=2_000)


def died(at_us: int, replica: str = "a", change: ReplicaChange = ReplicaChange.DIED) -> ReplicaChanged:
    return ReplicaChanged(at_us=at_us, replica=replica, change=change)


def plan(at_us: int, owner: str | None) -> PlanWritten:
    assignment = None if owner is None else {0: owner}
    return PlanWritten(at_us=at_us, epoch=1, action="up", reason="", replicas=("a",), assignment=assignment, moved=0)


def test_a_planned_move_is_a_handover() -> None:
    assert not Deaths([], [plan(0, "a"), plan(1_500, "b")]).by_death(TAKEN)


def test_a_death_in_between_makes_a_successor_even_where_a_plan_names_it() -> None:
    assert Deaths([died(1_500)], [plan(0, "a"), plan(1_600, "b")]).by_death(TAKEN)


def test_the_death_of_somebody_else_or_another_time_does_not() -> None:
    plans = [plan(0, "a"), plan(1_500, "b")]
    assert not Deaths([died(1_500, "c")], plans).by_death(TAKEN)
    assert not Deaths([died(5_000)], plans).by_death(TAKEN)


def test_who_takes_over_against_the_plan_is_a_successor_unless_the_other_left() -> None:
    plans = [plan(0, "a")]
    assert Deaths([], plans).by_death(TAKEN)
    assert not Deaths([died(1_200, change=ReplicaChange.LEFT)], plans).by_death(TAKEN)


def test_where_plans_place_nothing_a_death_may_be_noticed_later() -> None:
    assert Deaths([died(2_000 + NOTICED_WITHIN_US)], [plan(0, None)]).by_death(TAKEN)
    assert not Deaths([died(2_001 + NOTICED_WITHIN_US)], [plan(0, None)]).by_death(TAKEN)
    assert not Deaths([], []).by_death(TAKEN)


def test_what_the_group_places_itself_after_a_first_plan_is_a_handover() -> None:
    plans = [plan(0, "a"), plan(1_200, None), plan(1_400, None)]
    assert not Deaths([], plans).by_death(TAKEN)
    assert Deaths([died(1_500)], plans).by_death(TAKEN)
    assert Deaths([], [*plans, plan(1_600, "a"), plan(1_700, "a")]).by_death(TAKEN), "plans place again"
