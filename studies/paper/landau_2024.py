"""Landau et al. 2024: its statements are checked by the packing comparison; here they become rows like the others."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from bench.experiments.campaign import code_version
from studies.packing.claims import Claim, Comparison, combine
from studies.packing.compare import Question, done, jobs
from studies.paper.claim import PaperFigures

TITLE: Final = "Landau, Saurabh, Andrade, Barbosa 2024 (arXiv:2402.06085)"


def rows(claims: Iterable[Claim], settings: str) -> tuple[PaperFigures, ...]:
    """Return the rows. settings: what the comparison was run with, in words."""
    return tuple(
        PaperFigures(
            paper=TITLE,
            table="Twelve packing algorithms: Rscore, CBS",
            what=one.claim,
            published=one.published,
            ours=one.ours,
            reading=settings,
            settings=(),
            readings=(),
            reproducing=(),
            verdict=one.verdict,
            why="",
        )
        for one in claims
    )


def compared(folder: Path, *, processes: int, quick: bool) -> Comparison:
    """Return the packing comparison, computed anew unless `folder` keeps one by the same code. quick: few streams."""
    kept = folder / f"packing-{'quick-' if quick else ''}{code_version()}.json"
    if kept.exists():
        return msgspec.json.decode(kept.read_bytes(), type=Comparison)
    question = Question(streams=3, iterations=101, quick=True) if quick else Question()
    found = combine(question, dict(done(jobs(question), processes)))
    unfinished = kept.with_suffix(".tmp")
    unfinished.write_bytes(msgspec.json.encode(found))
    unfinished.replace(kept)
    return found


def in_words(comparison: Comparison) -> str:
    """Return what was compared."""
    study = comparison.studies[0]
    return f"{study.streams} streams of {study.iterations} iterations"
