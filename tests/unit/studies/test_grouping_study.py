"""What the study says of the paper follows from its rows, the committed ones included."""

import json
from collections.abc import Sequence

import numpy as np
import pytest
from command_line import run
from msgspec.structs import replace

from contracts.events import Grouping
from studies.grouping.claims import claims
from studies.grouping.compare import CAPACITY, SEEDS, SKEW, GroupingFigures, Job, do, over_seeds
from studies.grouping.play import Stream, imbalance
from studies.grouping.show import kept
from studies.published import DIFFERS, REPRODUCED


def test_imbalance_is_the_paper_s() -> None:
    ten = np.array([[1.0] * 8 + [3.0, 5.0]])
    evenly = np.full((1, 10), 100.0)
    # U is 100 for eight workers, 33.3 and 20 for two: their mean is 85.3, and m/n is 100
    assert imbalance(evenly, ten) == pytest.approx(1 - (8 + 1 / 3 + 1 / 5) / 10)
    assert imbalance(ten * 7, ten) == pytest.approx(0)
    assert imbalance(np.array([[40.0, 0, 0, 0]]), np.ones((1, 4))) == pytest.approx(3), "n − 1 at most"


def test_the_committed_verdicts_follow_from_the_committed_rows() -> None:
    study = kept().result
    assert claims(study.rows) == study.claims
    assert all(len(row.imbalance) == len(row.memory) == SEEDS for row in study.rows)


def verdict(rows: Sequence[GroupingFigures], claim: str) -> str:
    (found,) = [one for one in claims(rows) if one.claim.startswith(claim)]
    return found.verdict


def changed(study: str, grouping: Grouping, **values: tuple[float, ...]) -> list[GroupingFigures]:
    """Return the committed rows, the first of one grouping in one study told otherwise."""
    rows = list(kept().result.rows)
    at = next(i for i, row in enumerate(rows) if (row.study, row.grouping) == (study, grouping))
    rows[at] = replace(rows[at], **values)
    return rows


def test_a_limit_must_be_kept_by_every_seed() -> None:
    near, once = (0.014,) * SEEDS, (0.0, 0.0, 0.016, 0.0, 0.0)
    claim = "workers that differ, {3, 5}"
    assert verdict(changed(CAPACITY, Grouping.CG, imbalance=near), claim) == REPRODUCED
    assert verdict(changed(CAPACITY, Grouping.CG, imbalance=once), claim) == DIFFERS
    assert verdict(changed(SKEW, Grouping.CH, imbalance=once), "PoTC, SG, PoRC and CH stay balanced") == DIFFERS


def test_an_order_must_be_beyond_chance() -> None:
    before = (100.0, 110.0, 90.0, 105.0, 95.0)
    claim = "workers that differ: the queues of KG and SG grow"
    for after, said in (
        ((200.0, 190.0, 210.0, 200.0, 205.0), REPRODUCED),
        ((104.0, 106.0, 95.0, 100.0, 97.0), DIFFERS),
    ):
        rows = changed(CAPACITY, Grouping.SG, queue_half_s=before, queue_end_s=after)
        assert verdict(rows, claim) == said
    assert verdict(changed(CAPACITY, Grouping.SG, queue_half_s=(1.0,), queue_end_s=(2.0,)), claim) == DIFFERS, (
        "one seed"
    )


def test_the_seeds_of_one_kind_of_stream_are_one_row() -> None:
    streams = [
        Stream(events=4_000, skew=1.0, capacities=((1.0,) * workers,), seed=seed)
        for seed in (1, 2)
        for workers in (2, 3)
    ]
    todo = [Job(SKEW, one, ((Grouping.KG, 0.01, 10), (Grouping.SG, 0.01, 10))) for one in streams]
    rows = over_seeds(todo, [do(one) for one in todo])
    assert [(row.workers, row.grouping) for row in rows] == [(2, "kg"), (2, "sg"), (3, "kg"), (3, "sg")]
    first, second = rows[0].imbalance
    assert first != second
    assert rows[1].imbalance == (0, 0)


def test_the_quick_form_says_one_object_for_each_grouping() -> None:
    said = json.loads(run("grouping", "compare", "--quick", "--processes", "1", "--json").stdout)
    assert set(said) == {"kg", "pkg", "potc", "porc", "ch", "sg", "cg", "sticky_split"}
    assert said["cg"]["imbalance"] < 0.015 < min(one["imbalance"] for name, one in said.items() if name != "cg")
    assert said["kg"]["memory"] == 1 <= said["sticky_split"]["memory"] < said["pkg"]["memory"] < said["sg"]["memory"]
    assert said["kg"]["partials"] == 1 < said["sticky_split"]["partials"] < said["pkg"]["partials"]
    assert said["cg"]["in_sla"] > 0.9
    assert said["sg"]["in_sla"] < 0.5
    assert all(one["bulk_per_s"] > 0 and one["single_us"] > 0 for one in said.values())
