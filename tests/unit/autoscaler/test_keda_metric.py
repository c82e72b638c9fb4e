"""The metric for KEDA, evaluated with the HPA's formula."""

import math

from hypothesis import given
from hypothesis import strategies as st

from autoscaler.keda.scaler import metric_value
from contracts.plan import PlanRecord

TOLERANCE = 0.1


def plan(serving: int, wanted: int = 0) -> PlanRecord:
    names = tuple(f"pod-{number}" for number in range(serving))
    return PlanRecord(epoch=1, at_us=0, replicas=names, assignment=None, reason="", wanted=wanted)


def hpa(value: float, count: int) -> int:
    """Return the HPA's count after one sync, as in pkg/controller/podautoscaler with an average value of 1."""
    milli = int(value * 1000)
    ratio = milli / (1000 * count)
    return count if 1 - TOLERANCE <= ratio <= 1 + TOLERANCE else math.ceil(milli / 1000)


@given(serving=st.integers(1, 2000), more=st.integers(1, 100))
def test_the_hpa_starts_the_missing_replicas_and_at_most_a_tenth_more(serving: int, more: int) -> None:
    wanted = serving + more
    brought = hpa(metric_value(plan(serving, wanted), TOLERANCE), serving)
    assert wanted <= brought <= max(wanted, math.ceil(serving * (1 + TOLERANCE) + 0.01))
    arrived = metric_value(plan(wanted, wanted), TOLERANCE)
    assert hpa(arrived, brought) in {wanted, brought}, "and rests, or takes back what is too many"


@given(serving=st.integers(1, 2000), fewer=st.integers(1, 100))
def test_the_hpa_never_goes_below_the_plan(serving: int, fewer: int) -> None:
    wanted = max(1, serving - fewer)
    left = hpa(metric_value(plan(wanted, wanted), TOLERANCE), serving)
    assert wanted <= left <= max(wanted, wanted / (1 - TOLERANCE) + 1e-9)
