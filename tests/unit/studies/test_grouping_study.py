"""What the study says of the paper follows from its rows, the committed ones included."""

import json

from command_line import run
from msgspec.structs import replace

from contracts.events import Grouping
from studies.grouping.claims import claims, kept
from studies.grouping.compare import CAPACITY, SKEW
from studies.published import DIFFERS, REPRODUCED


def test_the_committed_verdicts_follow_from_the_committed_rows() -> None:
    study = kept().result
    assert claims(study.rows) == study.claims


def test_a_single_row_against_it_makes_a_claim_differ() -> None:
    rows = list(kept().result.rows)
    before = {one.claim: one.verdict for one in claims(rows)}
    at = next(i for i, row in enumerate(rows) if (row.study, row.grouping) == (SKEW, Grouping.PORC))
    rows[at] = replace(rows[at], imbalance=0.3)
    changed = {one.claim for one in claims(rows) if one.verdict != before[one.claim]}
    assert changed == {"PoTC, SG, PoRC and CH stay balanced, whatever the skew and the workers"}
    at = next(i for i, row in enumerate(rows) if (row.study, row.grouping) == (CAPACITY, Grouping.CG))
    rows[at] = replace(rows[at], imbalance=0.3)
    (unequal,) = [one for one in claims(rows) if one.claim.startswith("workers that differ, {3, 5}")]
    assert (before[unequal.claim], unequal.verdict) == (REPRODUCED, DIFFERS)
    assert "cg z=1 n=10: 0.300" in unequal.ours


def test_the_quick_form_says_one_object_for_each_grouping() -> None:
    said = json.loads(run("grouping", "compare", "--quick", "--processes", "1", "--json").stdout)
    assert set(said) == {"kg", "pkg", "potc", "porc", "ch", "sg", "cg", "sticky_split"}
    assert said["cg"]["imbalance"] < 0.05 < min(one["imbalance"] for name, one in said.items() if name != "cg")
    assert said["kg"]["memory"] == 1 <= said["sticky_split"]["memory"] < said["pkg"]["memory"] < said["sg"]["memory"]
    assert said["cg"]["in_sla"] > 0.9
    assert said["sg"]["in_sla"] < 0.5
    assert all(one["bulk_per_s"] > 0 and one["single_us"] > 0 for one in said.values())
