"""What must not be in a run: lost, repeated or overtaken events, times that cannot be."""

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from report.result import Integrity
from report.spark.measures import SPANS
from report.spark.order import key_violations, offset_gaps, order_violations
from report.spark.schema import TIMES
from report.wording import several

SKEWED: Final = "skewed_"
CUSTOMER: Final = "customer_hash"


def checks(now_us: int) -> list[Column]:
    """Return aggregates over event rows: future, and for each stage the events that it took less than no time."""
    latest = f.greatest(*TIMES)
    ends = {"handed_us": f.coalesce("accepted_us", "placed_us"), "sent_us": f.coalesce("shipped_us", "done_us")}
    skew = [
        f.count_if(ends.get(end, f.col(end)) < ends.get(begin, f.col(begin))).alias(SKEWED + name)
        for name, (begin, end) in SPANS.items()
    ]
    return [f.count_if(latest > now_us).alias("future"), *skew]


def integrity(events: DataFrame, counts: Mapping[str, int], duplicates: int) -> Integrity:
    """Return what is wrong. counts: of `measures.totals` and `checks`."""
    overtaken = order_violations(events).collect()[0]["order_violations"]
    gaps = offset_gaps(events).collect()[0]["offset_gaps"]
    skew = {name: counts[SKEWED + name] for name in SPANS if counts[SKEWED + name]}
    by_key = _by_key(events, overtaken)
    found: dict[str, Any] = {
        "lost": counts["lost"],
        "duplicates": duplicates,
        "order_violations_partition": overtaken,
        "order_violations_key": by_key,
        "clock_skew": skew,
        "offset_gaps": gaps,
        "future": counts["future"],
    }
    return Integrity(**found, suspect=_suspect(found))


def _by_key(events: DataFrame, overtaken: int) -> int | None:
    """Return the events that overtook one of their own customer; None where customers are not known."""
    if not overtaken:
        return 0
    if CUSTOMER not in events.columns:
        return None
    return int(key_violations(events).collect()[0]["key_violations"])


def _suspect(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Return each thing that is not 0, in words."""
    words = {
        "lost": "{} lost",
        "duplicates": "{} repeated",
        "order_violations_partition": "{} done before an event that lay ahead in the partition",
        "order_violations_key": "{} done before one of the same customer that lay ahead",
        "future": "{} with a time after this report was made",
    }
    said = [text.format(several(found[name], "event")) for name, text in words.items() if found[name]]
    said += [
        f"{several(count, 'event')} for which {stage} took less than no time"
        for stage, count in found["clock_skew"].items()
    ]
    if found["offset_gaps"]:
        said.append(f"{several(found['offset_gaps'], 'offset')} that no event has")
    return tuple(said)
