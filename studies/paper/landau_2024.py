"""Landau et al. 2024: its statements are checked by the packing comparison; here they become rows like the others."""

from pathlib import Path
from typing import Final

import msgspec

from bench.experiments.campaign import code_version
from report import replace_file
from studies.packing.claims import Comparison, combine
from studies.packing.compare import Question, done, jobs
from studies.paper.statement import PaperFigures

TITLE: Final = "Landau, Saurabh, Andrade, Barbosa 2024 (arXiv:2402.06085)"
TABLE: Final = "Twelve packing algorithms: Rscore, CBS"


def rows(comparison: Comparison) -> tuple[PaperFigures, ...]:
    """Return the rows."""
    streams = f"{comparison.studies[0].streams} streams of {comparison.studies[0].iterations} iterations"
    return tuple(
        PaperFigures(
            paper=TITLE,
            table=TABLE,
            what=one.claim,
            published=one.published,
            ours=one.ours,
            reading=streams,
            verdict=one.verdict,
        )
        for one in comparison.claims
    )


def compared(folder: Path, *, processes: int, quick: bool) -> Comparison:
    """Return the packing comparison, computed anew unless `folder` keeps one by the same code. quick: few streams."""
    kept = folder / f"packing-{'quick-' if quick else ''}{code_version()}.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=Comparison)
    question = Question(streams=3, iterations=101, quick=True) if quick else Question()
    found = combine(question, dict(done(jobs(question), processes)))
    replace_file(kept, msgspec.json.encode(found))
    return found
