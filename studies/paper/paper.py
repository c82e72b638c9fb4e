"""All claims of the papers, their runs, and the rows that come of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from bench.experiments.campaign import Campaign, Outcomes
from bench.experiments.compare import Missing
from bench.experiments.experiment import Experiment
from studies.paper.claim import Beyond, Claim, Contrast, Fact, PaperFigures, Reading
from studies.paper.verdict import Results, check_claim, check_contrast, check_fact, not_checkable

Statement = Claim | Contrast | Fact | Beyond


@dataclass(frozen=True, slots=True)
class Paper:
    """Everything that one paper says, in the order in which it is shown."""

    title: str
    statements: tuple[Statement, ...]


class PaperResult(msgspec.Struct, frozen=True, kw_only=True):
    """Every row, and the runs that failed."""

    rows: tuple[PaperFigures, ...]
    missing: tuple[Missing, ...]


def reproduce(campaign: Campaign, papers: Sequence[Paper], *, seeds: int) -> PaperResult:
    """Run what the statements need, each run once, and check every statement by the rule.

    Raises InvalidSettingsError before anything is computed.
    """
    jobs: dict[Claim, dict[Reading, list[Experiment]]] = {}
    for paper in papers:
        for statement in paper.statements:
            for claim in _claims(statement):
                jobs.setdefault(claim, claim.jobs(seeds))
    outcomes = campaign.run(one for readings in jobs.values() for some in readings.values() for one in some)
    rows = [_row(statement, jobs, outcomes) for paper in papers for statement in paper.statements]
    missing = [Missing(run=str(one), why=why) for one, why in outcomes.failed.items()]
    return PaperResult(rows=tuple(rows), missing=tuple(missing))


def _claims(statement: Statement) -> tuple[Claim, ...]:
    if isinstance(statement, Claim):
        return (statement,)
    return (statement.better, statement.worse) if isinstance(statement, Contrast) else ()


def _row(
    statement: Statement, jobs: Mapping[Claim, Mapping[Reading, Sequence[Experiment]]], done: Outcomes
) -> PaperFigures:
    if isinstance(statement, Claim):
        reasons = {done.failed[one] for some in jobs[statement].values() for one in some if one in done.failed}
        return check_claim(statement, _results(jobs[statement], done), "; ".join(sorted(reasons)))
    if isinstance(statement, Contrast):
        return check_contrast(statement, _results(jobs[statement.better], done), _results(jobs[statement.worse], done))
    return check_fact(statement) if isinstance(statement, Fact) else not_checkable(statement)


def _results(readings: Mapping[Reading, Sequence[Experiment]], done: Outcomes) -> Results:
    """Return the results of the readings whose every run succeeded."""
    return {
        reading: [done.results[one] for one in some]
        for reading, some in readings.items()
        if all(one in done.results for one in some)
    }
