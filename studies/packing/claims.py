"""The paper's statements, one by one, beside what our streams say."""

from collections.abc import Sequence
from typing import Final

from studies.packing.contestants import THE_TWELVE
from studies.packing.published import (
    ALWAYS_ON_FRONT,
    HEADLINES,
    MWF_CONSUMERS,
    MWF_P90_S,
    PARTITIONS,
    ROUND_ROBIN_P90_S,
)
from studies.packing.result import Claim, LatencyRow, LatencyStudy, Spread, Study
from studies.packing.words import change, median, percent

REPRODUCED: Final = "reproduced"
DIFFERS: Final = "differs"
UNKNOWN: Final = "cannot be checked"
TOLERANCE: Final = 0.03
"""Of a share: so far may the paper's one stream lie outside the range of ours."""
FOLLOWS: Final = "follows the load of the stream; the paper has one"


def claims(studies: Sequence[Study], latency: LatencyStudy) -> tuple[Claim, ...]:
    """Return a verdict on each claim; what the given studies do not cover cannot be checked."""
    covered = [study for study in studies if study.partitions == PARTITIONS]
    headlines = [claim for delta in HEADLINES for claim in _headline(delta, covered)]
    rows = {row.packer: row for row in latency.rows}
    constant = [_round_robin(n, rows[f"kd_{n}"], latency.streams) for n in ROUND_ROBIN_P90_S]
    return (*headlines, _front(covered), _growth(covered), *constant, *_mwf(rows["mwf"]))


def _headline(delta: int, studies: Sequence[Study]) -> tuple[Claim, Claim]:
    published = HEADLINES[delta]
    found = next((study.headline for study in studies if study.delta == delta), None)
    moves = f"MWF moves less load than the best existing algorithm, δ = {delta}"
    costs = f"MWF needs more consumers, δ = {delta}"
    if found is None:
        why = f"needs --partitions {PARTITIONS} --delta {delta}"
        return (
            Claim(claim=moves, published=percent(published.rscore_change), ours="–", verdict=UNKNOWN, why=why),
            Claim(claim=costs, published=percent(published.cbs), ours="–", verdict=UNKNOWN, why=why),
        )
    baseline = found.baseline.upper()
    return (
        Claim(
            claim=moves,
            published=percent(published.rscore_change),
            ours=change(found.rscore_change),
            verdict=_among(published.rscore_change, found.rscore_change_range),
            why=f"against {baseline}",
        ),
        Claim(
            claim=costs,
            published=percent(published.cbs),
            ours=change(found.cbs),
            verdict=_among(published.cbs, found.cbs_range),
            why=f"against the least of each iteration; against {baseline}, as in the line above: "
            f"{change(found.consumers_change)}",
        ),
    )


def _front(studies: Sequence[Study]) -> Claim:
    claim, published = "MBF, MBFP and MWF are always on the Pareto front of the twelve", "always"
    if not studies:
        return Claim(claim=claim, published=published, ours="–", verdict=UNKNOWN, why=f"needs {PARTITIONS} partitions")
    absent = [
        f"{point.packer.upper()} at δ = {study.delta}"
        for study in studies
        for point in study.points
        if point.packer in ALWAYS_ON_FRONT and not point.front_of_twelve
    ]
    deltas = ", ".join(str(study.delta) for study in studies)
    return Claim(
        claim=claim,
        published=published,
        ours=f"not {', '.join(absent)}" if absent else f"at δ = {deltas}",
        verdict=DIFFERS if absent else REPRODUCED,
        why="",
    )


def _growth(studies: Sequence[Study]) -> Claim:
    claim, published = "the Rscore grows with δ for all algorithms", "all"
    steady = sorted((study for study in studies if study.delta), key=lambda study: study.delta)
    if len(steady) < 2:
        return Claim(claim=claim, published=published, ours="–", verdict=UNKNOWN, why="needs two δ above 0")
    first, last = ({point.packer: point.rscore for point in study.points} for study in (steady[0], steady[-1]))
    exceptions = [
        f"{name.upper()} {first[name].mean:.1f} → {last[name].mean:.1f}"
        for name in THE_TWELVE
        if last[name].low <= first[name].high
    ]
    return Claim(
        claim=claim,
        published=published,
        ours=f"not {', '.join(exceptions)}" if exceptions else "all",
        verdict=DIFFERS if exceptions else REPRODUCED,
        why=f"δ = {steady[0].delta} → {steady[-1].delta}; grows: the intervals do not meet",
    )


def _round_robin(n: int, row: LatencyRow, streams: int) -> Claim:
    published, how_often = ROUND_ROBIN_P90_S[n], f"delayed in {row.streams_delayed} of {streams} streams"
    claim = f"kd_{n}: 90th percentile of the delayed"
    if published is None:
        verdict = DIFFERS if row.streams_delayed else REPRODUCED
        return Claim(claim=claim, published="none delayed", ours=how_often, verdict=verdict, why=FOLLOWS)
    return Claim(
        claim=claim,
        published=f"{published:g} s",
        ours=f"{median(row.p90_delayed_s)} s, {how_often}" if row.streams_delayed else how_often,
        verdict=_among(published, row.p90_delayed_s, 0.0),
        why=FOLLOWS,
    )


def _mwf(row: LatencyRow) -> tuple[Claim, Claim]:
    return (
        Claim(
            claim="MWF: 90th percentile of the delayed",
            published=f"{MWF_P90_S:g} s",
            ours=f"{median(row.p90_delayed_s)} s",
            verdict=_among(MWF_P90_S, row.p90_delayed_s, 0.01),
            why="says nothing: in this model who waits at all waits evenly between 0 and 5 s, whatever the packer",
        ),
        Claim(
            claim="MWF: consumers, on average",
            published=f"{MWF_CONSUMERS}",
            ours=f"{row.consumers.mean:.1f} ({row.consumers_range.least:.1f} … {row.consumers_range.most:.1f})",
            verdict=_among(MWF_CONSUMERS, row.consumers_range, 0.5),
            why=FOLLOWS,
        ),
    )


def _among(value: float, found: Spread | None, tolerance: float = TOLERANCE) -> str:
    """Return whether a stream such as ours may have given the value."""
    if found is None:
        return DIFFERS
    return REPRODUCED if found.least - tolerance <= value <= found.most + tolerance else DIFFERS
