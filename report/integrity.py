"""Check that each order had each effect once, and count lost, repeated and reordered events."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import numpy as np

from report.percentiles import SPANS, spans
from report.result import Effects, Integrity, TopicRecords
from report.stored import COLUMN_OF, CUSTOMER_COLUMN, LOCATION_COLUMNS, SETTLED_COUNT
from report.table import NONE, Groups, Ints, Mask, Rows, Table, coalesce, group_begins, previous, running_max
from report.terms import TIME_COLUMNS
from report.wording import plural

SKEW_PREFIX: Final = "skewed_"


def totals(rows: Rows, *, pipeline: bool, now_us: int) -> dict[str, int]:
    """Return counts over all events: dead letters, effects, records of each topic, and impossible times.

    now_us: time of the report, µs; a later time of an event is impossible.
    """
    found: Counter[str] = Counter()
    for counts in rows.pieces(partial(_totals, pipeline=pipeline, now_us=now_us)):
        found.update(counts)
    return dict(found)


def _totals(events: Table, *, pipeline: bool, now_us: int) -> dict[str, int]:
    counts = (events["done_us"] != NONE) | (events["dead_letters"] <= 0)
    complete, doubled = _effects(events, pipeline=pipeline)
    latest_us = np.maximum.reduce([events[name] for name in TIME_COLUMNS])
    found = {
        "dead_letters": events["dead_letters"].sum(),
        "exactly_once": (counts & ~doubled & complete).sum(),
        "doubled": (counts & doubled).sum(),
        "future": (latest_us > now_us).sum(),
    }
    found |= {SKEW_PREFIX + name: ((span < 0) & (span != NONE)).sum() for name, span in spans(events).items()}
    for prefix in COLUMN_OF.values():
        records = events[f"{prefix}_records"]
        found[f"{prefix}_records"] = records.sum()
        found[f"{prefix}_duplicates"] = np.maximum(records - 1, 0).sum()
        found[f"{prefix}_differing"] = (events[f"{prefix}_differ"] == 1).sum()
    return {name: int(count) for name, count in found.items()}


def effects(counts: Mapping[str, int]) -> Effects:
    """Count the orders by their effects. counts: from `totals`, with the number of `events`."""
    orders, once, doubled = counts["events"], counts["exactly_once"], counts["doubled"]
    return Effects(orders=orders, exactly_once=once, missing=orders - once - doubled, doubled=doubled)


def topics(counts: Mapping[str, int]) -> tuple[TopicRecords, ...]:
    """Return the counts of records of each topic, without empty topics. counts: from `totals`."""
    figures = ("records", "duplicates", "differing")
    return tuple(
        TopicRecords(topic=topic.value, **{name: counts[f"{prefix}_{name}"] for name in figures})
        for topic, prefix in COLUMN_OF.items()
        if counts[f"{prefix}_records"]
    )


def integrity(rows: Rows, counts: Mapping[str, int], *, lost: int | None, key_order: bool = False) -> Integrity:
    """Return the errors of the run. counts: from `totals`. key_order: whether order by customer is required."""
    placed = rows.known.issuperset(LOCATION_COLUMNS)
    repeated = sum(counts[f"{prefix}_duplicates"] for prefix in COLUMN_OF.values())
    keyed = placed and CUSTOMER_COLUMN in rows.known
    found: dict[str, Any] = {
        "lost": lost,
        "duplicates": repeated if SETTLED_COUNT in rows.known else None,
        "order_violations_partition": sum(rows.pieces(_overtaking, by="partition")) if placed else None,
        "order_violations_key": sum(rows.pieces(_overtaking_customers, by=CUSTOMER_COLUMN)) if keyed else None,
        "clock_skew": {name: counts[SKEW_PREFIX + name] for name in SPANS if counts[SKEW_PREFIX + name]},
        "offset_gaps": sum(rows.pieces(_offset_gaps, by="partition")) if placed else None,
        "future": counts["future"],
    }
    checked = found if key_order else found | {"order_violations_key": None}
    return Integrity(**found, suspect=_suspect(checked))


def _effects(events: Table, *, pipeline: bool) -> tuple[Mask, Mask]:
    complete, doubled = events["settled_records"] > 0, events["settled_differ"] == 1
    if pipeline:
        shipped, notified, declined = events["shipped_records"], events["notified_records"], events["accepted"] == 0
        complete &= ((shipped > 0) | declined) & (notified > 0)
        doubled |= (shipped > 1) | (notified > 1) | (declined & (shipped > 0))
    return complete, doubled


def _overtaking(events: Table) -> int:
    here, ahead_us = _ahead(events, "partition")
    return int((here["done_us"] < ahead_us).sum())


def _overtaking_customers(events: Table) -> int:
    """Return how many events were completed before an earlier event of the same customer, on any partition.

    An event arrives at its request time, or at that of an earlier event of its partition if that is later, because
    clocks of sources may differ. Two events that arrive at the same time on different partitions have no order.
    """
    here, ahead_us = _ahead(events.where(events[CUSTOMER_COLUMN] != NONE), CUSTOMER_COLUMN, "partition")
    requested_us = coalesce(here["accepted_us"], here["placed_us"], here["intended_us"])
    came_us = running_max(requested_us, group_begins(here[CUSTOMER_COLUMN], here["partition"]))
    order = np.lexsort([came_us, here[CUSTOMER_COLUMN]])
    customer, done_by_us = here[CUSTOMER_COLUMN][order], here["done_us"][order]
    first = group_begins(customer)
    before_us = previous(running_max(done_by_us, first), first)
    at_once = Groups(customer, came_us[order])  # `starts`: only what is before all simultaneous arrivals
    earlier_us = np.maximum(np.repeat(before_us[at_once.starts], at_once.sizes), ahead_us[order])
    return int((done_by_us < earlier_us).sum())


def _ahead(events: Table, *line: str) -> tuple[Table, Ints]:
    """Sort the completed events by the columns `line` and the offset.

    Return them, and for each event the latest completion time of the events before it that have equal `line` columns.
    """
    placed = (events["done_us"] != NONE) & (events["offset"] != NONE) & (events["partition"] != NONE)
    here = events.where(placed)
    here = here.where(np.lexsort([here["offset"], *(here[key] for key in reversed(line))]))
    first = group_begins(*(here[key] for key in line))
    return here, previous(running_max(here["done_us"], first), first)


def _offset_gaps(events: Table) -> int:
    placed = events.where((events["partition"] != NONE) & (events["offset"] != NONE))
    ends = Groups(placed["partition"])
    missing = ends.max(placed["offset"]) - ends.min(placed["offset"]) + 1 - ends.sizes
    return int(np.maximum(missing, 0).sum())


def _suspect(found: Mapping[str, Any]) -> tuple[str, ...]:
    words = {
        "lost": "{} lost",
        "duplicates": "{} repeated",
        "order_violations_partition": "{} completed before an earlier event of the partition",
        "order_violations_key": "{} completed before an earlier event of the same customer",
        "future": "{} with a timestamp after the time of this report",
    }
    errors = [text.format(plural(found[name], "event")) for name, text in words.items() if found[name]]
    skewed = [(plural(count, "event"), stage) for stage, count in found["clock_skew"].items()]
    errors += [f"{events} with a negative duration of {stage}" for events, stage in skewed]
    gaps = found["offset_gaps"]
    return (*errors, f"{plural(gaps, 'offset')} without an event") if gaps else tuple(errors)
