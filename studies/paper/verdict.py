"""The rule by which a row is reproduced or differs. Nobody marks anything by hand."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from msgspec.structs import replace

from bench.simulation.result import SimulationResult
from report.statistics import paired_difference
from studies.paper.claim import DIFFERS, REPRODUCED, UNKNOWN, Beyond, Claim, Contrast, Fact, PaperFigures, Reading
from studies.published import Published

SHARE: Final = 0.01
COST: Final = 0.03
ACTIONS: Final = 1
FACT: Final = 0.005
RULE: Final = (
    "**Reproduced**: under one and the same reading of what was run, every printed figure lies within the range of "
    f"our seeds, widened by {100 * SHARE:g} point of events in SLA, {100 * COST:g} % of replica-minutes, {ACTIONS} "
    f"scale action. Figures that need no run: within {100 * FACT:g} %. A conclusion (`A > B`): seed by seed, a "
    "reading that both rows share says so beyond chance (95 %), and none says the opposite. **Differs**: otherwise; "
    "the nearest reading is shown. **Cannot be checked**: it was measured with what nobody else has."
)

Results = Mapping[Reading, Sequence[SimulationResult]]
"""Of a claim; a reading that failed is not there."""


@dataclass(frozen=True, slots=True)
class _Deviation:
    """How far a printed figure lies outside the range of ours."""

    words: str
    tolerances: float
    """The distance in units of what is tolerated; up to 1 is the same figure."""


def check_claim(claim: Claim, results: Results, failed: str = "") -> PaperFigures:
    """Return the row of a claim, shown under the reading that comes nearest. failed: why a reading has no result."""
    blank = _unchecked(claim, printed_figures(claim.published), failed or "nothing was run")
    if not results:
        return blank
    deviations = {one: _deviations(claim.published, some) for one, some in results.items()}
    nearest = min(deviations, key=lambda one: max(each.tolerances for each in deviations[one]))
    wide = [each for each in deviations[nearest] if each.tolerances > 1]
    why = [*(each.words for each in wide), *([claim.reservation] if wide and claim.reservation else [])]
    return replace(
        blank,
        ours=our_figures(claim.published, results[nearest]),
        reading="; ".join([nearest.name, *_settings(nearest.apart), *([nearest.way] if nearest.way else [])]),
        settings=_settings(nearest.changes),
        readings=tuple(one.name for one in results),
        reproducing=tuple(one.name for one in results if all(each.tolerances <= 1 for each in deviations[one])),
        verdict=DIFFERS if wide else REPRODUCED,
        why="; ".join(why),
    )


def check_contrast(contrast: Contrast, better: Results, worse: Results) -> PaperFigures:
    """Return the row of a conclusion: under which readings it holds."""
    printed = _points(contrast.better.published.in_sla - contrast.worse.published.in_sla)
    blank = _unchecked(contrast, printed, "no reading gave both")
    by_name = {one.name: some for one, some in worse.items()}
    shared = {
        one.name: paired_difference([each.in_sla for each in some], [each.in_sla for each in by_name[one.name]])
        for one, some in better.items()
        if one.name in by_name
    }
    if not shared:
        return blank
    if any(len(some) == 1 for some in better.values()):
        return replace(blank, why="a single seed says nothing about chance")
    said = {name: difference.mean > 0 for name, difference in shared.items() if difference.distinguishable}
    opposed = [name for name, agrees in said.items() if not agrees]
    why = f"the opposite under: {'; '.join(opposed)}" if opposed else "" if said else "not distinguishable"
    means = [difference.mean for difference in shared.values()]
    return replace(
        blank,
        ours=f"{100 * min(means):+.1f} to {_points(max(means))}",
        reading="every reading",
        readings=tuple(shared),
        reproducing=tuple(name for name, agrees in said.items() if agrees),
        verdict=DIFFERS if why else REPRODUCED,
        why=why,
    )


def check_fact(fact: Fact) -> PaperFigures:
    """Return the row of a figure that needs no run."""
    found = fact.ours()
    off = found / fact.published - 1
    same = abs(off) <= FACT
    why = "" if same else "; ".join(filter(None, (f"{100 * off:+.1f} %", fact.reservation)))
    return replace(
        _unchecked(fact, _plain(fact.published), why),
        ours=_plain(found),
        reading=fact.settings,
        verdict=REPRODUCED if same else DIFFERS,
    )


def not_checkable(one: Beyond) -> PaperFigures:
    """Return the row of what nobody can check here."""
    return _unchecked(one, one.published, one.why)


def printed_figures(published: Published) -> str:
    """Return what was printed, in the order of `our_figures`."""
    parts = [f"{100 * published.in_sla:.4g} %"]
    if published.replica_minutes is not None:
        parts.append(f"{published.replica_minutes:g} r-m")
    if published.scale_ups is not None:
        parts.append(f"{published.scale_ups}/{published.scale_downs}")
    if published.max_below_s is not None:
        parts.append(f"worst < {published.max_below_s:g} s")
    return ", ".join(parts)


def our_figures(published: Published, results: Sequence[SimulationResult]) -> str:
    """Return our means of what was printed, and the range of in SLA over the seeds."""
    shares = [100 * one.in_sla for one in results]
    spread = f" ({min(shares):.2f} to {max(shares):.2f})" if max(shares) - min(shares) >= 0.005 else ""
    parts = [f"{100 * _mean(results):.2f} %{spread}"]
    if published.replica_minutes is not None:
        parts.append(f"{_average([one.replica_minutes for one in results]):.4g} r-m")
    if published.scale_ups is not None:
        ups, downs = ([getattr(one, name) for one in results] for name in ("scale_ups", "scale_downs"))
        parts.append(f"{_average(ups):.3g}/{_average(downs):.3g}")
    if published.max_below_s is not None:
        parts.append(f"worst {max(one.max_s or 0.0 for one in results):.2f} s")
    return ", ".join(parts)


def _deviations(published: Published, results: Sequence[SimulationResult]) -> list[_Deviation]:
    """Return the distance of each printed figure from ours."""
    off = _off_by(published.in_sla, [one.in_sla for one in results])
    deviations = [_Deviation(f"in SLA {_points(off)}", abs(off) / SHARE)]
    if published.replica_minutes is not None:
        off = _off_by(published.replica_minutes, [one.replica_minutes for one in results]) / published.replica_minutes
        deviations.append(_Deviation(f"r-m {100 * off:+.1f} %", abs(off) / COST))
    for name, printed in (("scale_ups", published.scale_ups), ("scale_downs", published.scale_downs)):
        if printed is not None:
            off = _off_by(printed, [getattr(one, name) for one in results])
            deviations.append(_Deviation(f"{name.replace('_', '-')} {off:+g}", abs(off) / ACTIONS))
    if published.max_below_s is not None:
        worst = max(one.max_s or 0.0 for one in results)
        deviations.append(_Deviation(f"worst event {worst:.2f} s", 0.0 if worst < published.max_below_s else 2.0))
    return deviations


def _off_by(printed: float, found: Sequence[float]) -> float:
    """Return by how much the nearest of ours lies above (+) or below (−) what was printed; 0 inside the range."""
    if min(found) <= printed <= max(found):
        return 0.0
    return min(found) - printed if min(found) > printed else max(found) - printed


def _unchecked(one: Claim | Contrast | Fact | Beyond, published: str, why: str) -> PaperFigures:
    """Return the row as it is while nothing of ours stands beside what was printed."""
    return PaperFigures(
        paper=one.paper,
        table=one.table,
        what=one.what,
        published=published,
        ours="–",
        reading="",
        settings=(),
        readings=(),
        reproducing=(),
        verdict=UNKNOWN,
        why=why,
    )


def _settings(changes: Sequence[tuple[str, Any]]) -> tuple[str, ...]:
    return tuple(f"{key}={value}" for key, value in changes)


def _mean(results: Sequence[SimulationResult]) -> float:
    return _average([one.in_sla for one in results])


def _average(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _points(share: float) -> str:
    return f"{100 * share:+.1f} points"


def _plain(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")
