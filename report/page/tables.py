"""The texts of the page's tables."""

from typing import Final

from report.page.happenings import Tenures
from report.result import STAGES, Breakdown, Result
from report.wording import UNKNOWN, count, duration, minutes, moment, over, several, share

Rows = list[list[str]]
Table = tuple[str, str, list[str], Rows]
"""Title, note, columns, rows."""
RANKS: Final = ("p50", "p90", "p95", "p99", "p99.9", "p99.99", "max")
OWNERS_TOLD: Final = 30
"""Replicas that are named for one partition."""
STAGES_NOTE: Final = (
    "A live replica receives more than one event at a time and serves one after the other, so waiting behind those "
    "counts as received → done; a simulated one receives an event as it begins to serve it. Percentiles are exact: "
    "the nearest rank over every event."
)


def details(result: Result) -> list[Table]:
    """Return the tables of which something is known."""
    of = result.breakdowns
    ranks = ["events", "late", "in time", "p50", "p99", "p99.9", "max"]
    found = [
        ("Where the time went, stage by stage", STAGES_NOTE, ["stage", *RANKS, "events"], stages(result)),
        ("By replica", "", ["replica", *ranks], list(map(_breakdown, of.replicas))),
        ("By partition", "", ["partition", *ranks], list(map(_breakdown, of.partitions))),
        ("By plan", "", ["plan", *ranks], list(map(_breakdown, of.epochs))),
        _rebalances(result),
        ("What it cost", "", ["", "", "what it is"], cost(result)),
        ("What must not be", "", ["what must not be", "found"], integrity(result)),
        (
            "Records of each topic",
            "A duplicate is a record whose event was on the topic before; it may be, as long as both say the same.",
            ["topic", "records", "duplicates", "that differ"],
            [[one.topic, *map(count, (one.records, one.duplicates, one.differing))] for one in result.topics],
        ),
    ]
    return [table for table in found if table[3]]


def stages(result: Result) -> Rows:
    """Return a row for each stage."""
    spans = STAGES if result.topology == "pipeline" else STAGES | {"queueing": "placed → received by Payment"}
    return [
        [
            spans.get(one.stage, one.stage),
            *map(duration, (one.p50_s, one.p90_s, one.p95_s, one.p99_s, one.p999_s, one.p9999_s, one.max_s)),
            count(one.events),
        ]
        for one in result.stages
    ]


def owners(result: Result, held: Tenures) -> Rows:
    """Return partition, its worst latency, and who served it since when."""
    if result.heat is None:
        return []
    rows = []
    for partition, cells in zip(result.heat.partitions, result.heat.max_s, strict=True):
        some = held[partition]
        words = ", ".join(f"{owner} ({moment(at_s)})" for at_s, owner in some[:OWNERS_TOLD])
        left_out = f" and {several(len(some) - OWNERS_TOLD, 'change')} more" if len(some) > OWNERS_TOLD else ""
        worst_s = max((value for value in cells if value is not None), default=None)
        rows.append([str(partition), duration(worst_s), words + left_out or UNKNOWN])
    return rows


def cost(result: Result) -> Rows:
    """Return name, number and meaning of what was paid and done; nothing where no journal tells it."""
    of = result.cost
    if of is None or not result.journaled:
        return []
    gap = of.bound_gap_replica_minutes
    unsure = f"; may be up to {minutes(gap)} more, the search was given up in some seconds" if gap else ""
    return [
        ["requested", minutes(of.requested_replica_minutes), "replica-minutes that were paid for"],
        ["ready", minutes(of.ready_replica_minutes), "replica-minutes that could serve"],
        ["bound", minutes(of.bound_replica_minutes), f"the least that hold each second's own events{unsure}"],
        ["regret", over(of.regret), "requested over the bound"],
        ["ups", count(result.scale_ups), f"the largest added {several(of.largest_up, 'replica')}"],
        ["downs", count(result.scale_downs), f"the largest gave back {several(of.largest_down, 'replica')}"],
        ["reassignments", count(result.reassignments), "the same replicas, other owners"],
        ["partitions moved", count(result.moved_partitions), "over all plans"],
        [
            "Rscore",
            UNKNOWN if of.rebalance_score is None else f"{of.rebalance_score:.3f}",
            "work that moved per plan, in replicas",
        ],
    ]


def integrity(result: Result) -> Rows:
    """Return what must not be, and how often it was."""
    found = result.integrity
    if found is None:
        return []
    rows: dict[str, int | None] = {
        "events lost": found.lost,
        "duplicate records": found.duplicates,
        "done out of order, within a partition": found.order_violations_partition,
        "done out of order, within a key": found.order_violations_key,
        "offsets that no event has": found.offset_gaps,
        "times after the report was made": found.future,
        **{f"negative time, {STAGES.get(stage, stage)}": number for stage, number in found.clock_skew.items()},
    }
    return [[words, count(number)] for words, number in rows.items()]


def _rebalances(result: Result) -> Table:
    """Return how long partitions stood still when they changed hands."""
    columns = [
        "round",
        "members",
        "moved",
        "rounds",
        "measured",
        "pause p50",
        "p90",
        "p99",
        "max",
        "plan → ready p50",
        "p99",
        "max",
    ]
    found = result.rebalances
    rows = [
        [
            one.kind,
            *map(count, (one.members, one.moved, one.rounds, one.measured)),
            *map(duration, (one.pause_p50_s, one.pause_p90_s, one.pause_p99_s, one.pause_max_s)),
            *map(duration, (one.ready_p50_s, one.ready_p99_s, one.ready_max_s)),
        ]
        for one in (found.lengths if found else ())
    ]
    note = (
        f"Rounds of the group under {found.delivery if found else ''} delivery. The pause is the longest that an event "
        "waited only because its partition had no owner; plan → ready ends when the last partition is served again. "
        "By plan: a plan moved partitions; death: it gave away what a dead replica had; membership: the group itself."
    )
    return ("Rebalances", note, columns, rows)


def _breakdown(one: Breakdown) -> list[str]:
    in_time = share(1 - one.late / one.events) if one.events else UNKNOWN
    return [
        one.name,
        count(one.events),
        count(one.late),
        in_time,
        *map(duration, (one.p50_s, one.p99_s, one.p999_s, one.max_s)),
    ]
