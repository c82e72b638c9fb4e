"""A written plan is adopted once each member reports that it serves by it."""

from live_worlds import ALL_ON_0, HALVES, GroupWorld, started

from autoscaler.model import Action

WITHIN_S = 12.0


def group() -> GroupWorld:
    world = started(2, taken_within_s=WITHIN_S)
    report(world, 1, 1)
    return world


def report(world: GroupWorld, *assigned: int) -> None:
    """Let each replica report the epoch that it serves by, without advancing the clock."""
    for ordinal, epoch in enumerate(assigned):
        name = f"payment-{ordinal}"
        world.reports.report(name, world.launcher.newest(name), epoch=epoch, assigned_epoch=epoch)
    world.group.advance()


def stay(world: GroupWorld, seconds: float, *assigned: int) -> None:
    """Let time pass in steps of a second."""
    for _ in range(round(seconds)):
        world.clock.advance(1)
        report(world, *assigned)


def test_slow_or_silent_members_cause_no_repetition() -> None:
    world = group()
    stay(world, WITHIN_S - 1, 1, 0)
    stay(world, 1, 1, 1)
    stay(world, 1, 1, 0)
    stay(world, WITHIN_S, 1)  # payment-1 does not report
    assert len(world.plans()) == 1
    assert "plans" not in world.problems.current


def test_a_member_that_adopts_each_of_many_plans_is_no_laggard() -> None:
    world = group()
    for epoch in range(1, 30):
        world.decide(Action.REASSIGN, ("payment-0", "payment-1"), ALL_ON_0 if epoch % 2 else HALVES)
        stay(world, 1, epoch, epoch)
    assert not world.problems.current
