"""A journal has what the policy compared for each change, and the comparison leads to the same plan again.

tests/golden/journal.jsonl was recorded from w1, simulated; it has only changes and their plans.
"""

import zlib
from base64 import b64decode, b64encode
from pathlib import Path

import msgspec
import pytest
from journal_entries import entries

from autoscaler.comparisons import MAX_BYTES, decode, encode
from contracts.journal import JournalEntry, PlanWritten, TickRecord
from tailpack.cli.explain import compare_again, explained, lines

RECORDED = Path(__file__).parents[2] / "golden" / "journal.jsonl"


def journal() -> list[JournalEntry]:
    return entries(RECORDED.read_bytes().splitlines())


def changes() -> list[TickRecord]:
    return [entry for entry in journal() if isinstance(entry, TickRecord) and entry.comparison]


def test_a_recorded_journal_leads_to_equal_plans() -> None:
    plans = {plan.reason: plan for plan in journal() if isinstance(plan, PlanWritten)}
    assert len(changes()) >= 10
    for tick in changes():
        compared = decode(tick.comparison)
        chosen = compared.choose(compared.plans())
        plan = plans[tick.reason]
        assert chosen is not None
        assert {compared.names[number] for number in chosen.in_use.nonzero()[0]} == set(plan.replicas)
        assert {number: compared.names[owner] for number, owner in enumerate(chosen.owners)} == plan.assignment
        assert chosen.cost == pytest.approx(tick.alternatives[0].cost_s)
        assert decode(encode(compared)).now.paths.sizes.tolist() == compared.now.paths.sizes.tolist()


def test_why_not_predicts_also_counts_that_were_not_compared() -> None:
    decided = next(one for one in explained(journal()) if one.compared)
    tick = next(tick for tick in changes() if tick.at_us == decided.at_us)
    partitions = len(tick.partitions)
    texts = {
        count: next(text for text in lines(decided, count, tick.comparison) if "why not" in text)
        for count in (*range(1, partitions + 1), partitions + 1)
    }
    assert all("late events; chosen: " in text for count, text in texts.items() if count <= partitions)
    assert "more than the partitions" in texts[partitions + 1]


def packed(fields: object) -> str:
    return b64encode(zlib.compress(msgspec.msgpack.encode(fields))).decode()


def test_a_damaged_comparison_is_one_line() -> None:
    tick = changes()[0]
    fields = msgspec.msgpack.decode(zlib.decompress(b64decode(tick.comparison)))
    fields[0][0][7] += 1000  # more replicas are present than have rates
    wrong = packed(fields)
    bomb = b64encode(zlib.compress(bytes(10 * MAX_BYTES))).decode()
    for text in ("?", tick.comparison[:-40], wrong, bomb):
        (shown,) = [line for line in lines(explained([tick])[0], 1, text) if "why not" in line]
        assert "cannot be repeated" in shown
    fields[0][0][7] -= 1000
    fields[0][4] = 0.0
    assert compare_again(packed(fields), 1).startswith("the comparison in the journal is damaged (")
