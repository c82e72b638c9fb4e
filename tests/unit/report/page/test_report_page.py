"""The page is one self-contained file, and hostile text in the data cannot break it."""

import base64
import hashlib
import json
import re

import msgspec
from example_report import changed, example

from contracts.journal import PlanAlternative
from report.causes import MEANINGS, Cause
from report.page.page import PAGE_FOLDER, html, join_units

MEGABYTE = 1_000_000
HOSTILE = "</script><script>alert(1)</script> & more"


def data_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    assert found
    return json.loads(found.group(1))


def test_the_page_needs_no_other_file() -> None:
    text = html(example())
    links = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert links == {"https://github.com/leeoniya/uPlot"}, "only where the library comes from"
    assert not re.findall(r"<(?:script|img|link|iframe)[^>]* (?:src|href)=\"(?!data:)", text)
    assert "@import" not in text
    assert "url(" not in text
    assert len(text.encode()) < MEGABYTE
    assert html(example()) == text, "the same result gives the same page"


def test_the_chart_library_is_the_one_that_was_locked() -> None:
    lock = json.loads((PAGE_FOLDER / "vendor" / "uplot.lock.json").read_text())
    files = {path.name for path in (PAGE_FOLDER / "vendor").iterdir()} - {"uplot.lock.json"}
    assert set(lock["files"]) == files
    for name, integrity in lock["files"].items():
        digest = hashlib.sha512((PAGE_FOLDER / "vendor" / name).read_bytes()).digest()
        assert integrity == f"sha512-{base64.b64encode(digest).decode()}", name
    assert f"(v{lock['version']})" in (PAGE_FOLDER / "vendor" / "uPlot.iife.min.js").read_text()[:100]


def test_hostile_text_in_the_data_is_escaped() -> None:
    tail = example().tail
    assert tail
    episode = msgspec.structs.replace(tail.episodes[0], why=HOSTILE, cause=HOSTILE, replica=HOSTILE)
    cause = msgspec.structs.replace(tail.causes[0], cause=HOSTILE)
    hostile = msgspec.structs.replace(tail, episodes=(episode,), causes=(cause,), by_second={HOSTILE: (1,) * 124})
    decision = msgspec.structs.replace(example().decisions[0], reason=HOSTILE)
    text = html(changed(decisions=(decision,), verdict=HOSTILE, tail=hostile))
    assert "alert(1)</script>" not in text
    assert text.count("<script") == text.count("</script>") == 3, "the data, the library, the page's own"
    assert HOSTILE in json.dumps(data_of(text), ensure_ascii=False)


def test_the_page_lists_each_decision_with_its_alternatives_and_each_failure() -> None:
    alternative = PlanAlternative(replicas=2, moved=3, in_sla=0.999, cost_s=10.25)
    first, *others = example().decisions
    text = html(changed(decisions=(msgspec.structs.replace(first, at_s=-50.0, alternatives=(alternative,)), *others)))
    assert text.count('class="reason"') == len(example().decisions)
    assert "2 replicas, moving 3 partitions: 99.9 % in time, cost 10.2 (chosen)" in text
    assert "50.0 s before the start" in text
    assert "killed by signal 9" in text


def test_the_page_lists_each_cause_and_each_episode() -> None:
    text = html(example())
    tail = example().tail
    assert tail
    for cause in tail.causes:
        assert MEANINGS[Cause(cause.cause)].replace("'", "&#39;") in text
    merged = tail.episodes[2]  # by the larger episode of the same cause and plan at that time
    for episode in tail.episodes:
        assert (join_units(episode.why) in text) == (episode is not merged)
    assert 'data-label="late">5</td>' in text
    assert "partitions 3, 4, payment-0, payment-2, plan 56" in text
    rows = re.findall(r'<tr id="episode-(\d+)"><th scope="row" class="when"><a href="#time" data-at="([\d.]+)"', text)
    drawn = data_of(text)["episodes"]
    assert [(int(row), float(at)) for row, at in rows] == [(row, episode[0]) for row, episode in enumerate(drawn)]  # type: ignore[arg-type,var-annotated]
    assert "not listed" not in text
    (seventh,) = (one for one in data_of(text)["unchanged"] if one[0] == 7.1)  # type: ignore[attr-defined]
    assert seventh == [7.1, "one replica is enough"]
    short = msgspec.structs.replace(tail, episodes=tail.episodes[:1], episodes_left_out=3)
    assert "3 smaller episodes are not listed" in html(changed(tail=short))


def test_an_invalid_or_suspect_run_is_marked() -> None:
    text = html(changed(valid=False, problems=("the generator was late",)))
    assert '<span class="badge">not valid</span>' in text
    assert "<li>the generator was late</li>" in text
    clean = example().integrity
    assert clean
    assert ">Suspect</a>: 14 duplicate records" in text
    assert "Suspect" not in html(changed(integrity=msgspec.structs.replace(clean, suspect=())))
