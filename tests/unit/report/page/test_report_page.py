"""The page is one file, safe against what stands in the data, and says what is not known."""

import json
import re

import msgspec
import numpy as np
import pytest
from example_report import example

from report.causes import MEANINGS, Cause
from report.page.page import html
from report.page.rendering import tied
from report.page.terms import terms
from report.result import (
    Breakdowns,
    CauseOfLateness,
    DecisionMade,
    HeatMap,
    LateEpisode,
    Result,
    Series,
    Tail,
)

MEGABYTE = 1_000_000
HOSTILE = "</script><script>alert(1)</script> & more"


def changed(**values: object) -> Result:
    return msgspec.structs.replace(example(), **values)


def data_of(text: str) -> dict[str, object]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, flags=re.DOTALL)
    assert found
    return json.loads(found.group(1))


def test_the_page_needs_nothing_beside_it() -> None:
    text = html(example())
    links = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert links <= {"http://www.w3.org/2000/svg"}, "only the name of an XML vocabulary"
    assert not re.findall(r"<(?:script|img|link|iframe)[^>]* (?:src|href)=\"(?!data:)", text)
    assert "@import" not in text
    assert "url(" not in re.sub(r"url\(#[a-z]+-\d+\)", "", text)
    assert len(text.encode()) < MEGABYTE


def test_what_is_in_the_data_cannot_break_out() -> None:
    decision = msgspec.structs.replace(example().decisions[0], reason=HOSTILE)
    tail = example().tail
    assert tail
    spell = msgspec.structs.replace(tail.episodes[0], why=HOSTILE, cause=HOSTILE, replica=HOSTILE)
    by_second = {HOSTILE: (1,) * 124}
    cause = msgspec.structs.replace(tail.causes[0], cause=HOSTILE)
    text = html(
        changed(
            decisions=(decision,),
            verdict=HOSTILE,
            tail=msgspec.structs.replace(tail, episodes=(spell,), causes=(cause,), by_second=by_second),
        )
    )
    assert "alert(1)</script>" not in text
    assert text.count("<script") == 2, "the data and the page's own script"
    assert HOSTILE in json.dumps(data_of(text), ensure_ascii=False)


def test_every_decision_and_failure_is_told() -> None:
    text = html(example())
    assert text.count('class="reason"') == len(example().decisions)
    assert "killed by signal 9" in text
    reasons = {made.reason for made in example().decisions}
    told = " ".join(words for _, _, words in data_of(text)["events"])  # type: ignore[attr-defined]
    assert all(reason in told for reason in reasons)


def test_each_late_event_is_explained_by_cause_place_and_words() -> None:
    text = html(example())
    tail = example().tail
    assert tail
    for one in tail.causes:
        assert MEANINGS[Cause(one.cause)].replace("'", "&#39;") in text
    for spell in tail.episodes:
        assert spell.why in text
    rows = re.findall(r'<tr id="spell-(\d+)"><th scope="row" class="when"><a href="#time" data-from="([\d.]+)"', text)
    told = data_of(text)["spells"]
    assert [(int(row), float(at)) for row, at in rows] == [(row, one["from"]) for row, one in enumerate(told)]  # type: ignore[arg-type,var-annotated]
    assert {one["why"] for one in told} == {spell.why for spell in tail.episodes}  # type: ignore[attr-defined]
    assert "8 of 10,240 events were not done within 500 ms" in text
    assert "not listed" not in text


def test_the_head_says_why_most_were_late() -> None:
    assert "Late: 8 events. By cause: 5 replica dead, 2 overloaded, 1 handover." in html(example())
    assert "By cause" not in html(changed(tail=Tail(late=0, causes=(), episodes=())))


def test_the_words_of_the_page_are_explained_on_it() -> None:
    text = html(example())
    for word, meaning in terms():
        assert f"<dt>{word}</dt><dd>{tied(meaning)}".replace("'", "&#39;") in text
    explained = " ".join(word for word, _ in terms())
    for label in ("p99", "replica-minutes", "bound", "lag", "epoch", "handover", "Rscore", "effect", "μ"):
        assert label in explained


def test_a_number_stays_with_its_unit() -> None:
    assert tied("99.9 % within 500 ms or 2 s, for 3 sites") == "99.9\u00a0% within 500\u00a0ms or 2\u00a0s, for 3 sites"


def test_spells_that_are_left_out_are_counted() -> None:
    tail = example().tail
    assert tail
    text = html(changed(tail=msgspec.structs.replace(tail, episodes=tail.episodes[:1], episodes_left_out=3)))
    assert "3 smaller spells (7 events) are not listed" in text


def test_every_cause_has_a_colour_in_both_themes() -> None:
    style = html(example()).split("<style>")[1].split("</style>")[0]
    for cause in Cause:
        assert style.count(f"--{cause}: #") == 2
        assert f".cause-{cause} {{ fill: var(--{cause})" in style


def test_colours_are_the_pages_own_so_that_both_schemes_work() -> None:
    svg = "".join(re.findall(r"<svg.*?</svg>", html(example()), flags=re.DOTALL))
    assert not re.findall(r"(?:fill|stroke)[:=]", svg)
    assert "#" not in re.sub(r"url\(#[a-z]+-\d+\)", "", svg)


def test_no_id_is_given_twice() -> None:
    found = re.findall(r'\bid="([^"]+)"', html(example()))
    assert len(found) == len(set(found))


def test_a_simulated_run_has_no_date() -> None:
    text = html(changed(provenance=msgspec.structs.replace(example().provenance, started_us=0)))
    assert "1970" not in text
    assert "<dt>simulated</dt>" in text
    assert "<dt>simulated</dt>" not in html(example())


def test_the_same_result_gives_the_same_page() -> None:
    assert html(example()) == html(example())


def test_a_run_of_which_little_is_known_still_has_a_page() -> None:
    series = example().series
    nothing = (None,) * len(series.arrivals)
    unknown = msgspec.structs.replace(
        series,
        requested_replicas=nothing,
        ready_replicas=nothing,
        bound_replicas=(),
        lag=nothing,
        p99_s=nothing,
        max_s=nothing,
    )
    text = html(
        changed(
            p50_s=None,
            max_s=None,
            replica_minutes=None,
            decisions=(),
            stages=(),
            failures=(),
            series=unknown,
            distribution=msgspec.structs.replace(example().distribution, share=(), latency_s=()),
            breakdowns=Breakdowns(),
            tail=None,
            heat=None,
            cost=None,
            integrity=None,
        )
    )
    assert "No plan was written" in text
    assert "<dt>replica-minutes</dt><dd>–</dd>" in text
    assert "Not known for this run: replicas; lag, events; latency, ms." in text
    assert "without looking for causes" in text
    assert 'href="#heat"' not in text


def test_a_run_without_a_single_second_still_has_a_page() -> None:
    series = Series(
        arrivals=(), done=(), p50_s=(), p99_s=(), max_s=(), requested_replicas=(), ready_replicas=(), lag=()
    )
    heat = HeatMap(cell_s=1.0, partitions=(0, 1), max_s=((), ()))
    text = html(changed(series=series, heat=heat, decisions=(), failures=()))
    assert data_of(text)["seconds"] == 0


def test_a_measurement_that_does_not_stand_is_marked() -> None:
    text = html(changed(valid=False, problems=("the generator was late",)))
    assert '<span class="badge">not valid</span>' in text
    assert "<li>the generator was late</li>" in text


def test_a_run_with_something_suspect_is_marked() -> None:
    clean = example().integrity
    assert clean
    assert "look at integrity" in html(example())
    assert "look at integrity" not in html(changed(integrity=msgspec.structs.replace(clean, suspect=())))


@pytest.fixture(scope="module")
def ten_hours() -> Result:
    """Noise in every series, every cause in every second: more than any run has to say."""
    chance = np.random.default_rng(3)
    seconds, partitions = 36_000, 20

    def whole(most: int) -> tuple[int, ...]:
        return tuple(chance.integers(0, most, seconds).tolist())

    def times() -> tuple[float, ...]:
        return tuple(chance.lognormal(-2, 1, seconds).tolist())

    latency = (*times()[:-7], 77.7, *times()[:6])
    by_second = {str(cause): whole(5) for cause in Cause}
    late = sum(map(sum, by_second.values()))
    why = "payment-1 died at 1:01.2 (killed by signal 9); its partition stood still for 590 ms, until an heir served."
    return changed(
        events=10_000_000,
        series=Series(
            arrivals=whole(500),
            done=whole(500),
            p50_s=times(),
            p99_s=times(),
            max_s=latency,
            requested_replicas=whole(9),
            ready_replicas=whole(9),
            lag=whole(5_000),
            bound_replicas=whole(9),
        ),
        decisions=tuple(
            DecisionMade(at_s=float(k * 9), epoch=k, action="up", replicas=2, moved=k % 7, reason=why)
            for k in range(4_000)
        ),
        tail=Tail(
            late=late,
            causes=tuple(
                CauseOfLateness(cause=cause, events=sum(counts), share=sum(counts) / late, worst_s=77.7)
                for cause, counts in by_second.items()
            ),
            episodes=tuple(
                LateEpisode(
                    cause="burst",
                    partition=k % 20,
                    replica="payment-1",
                    epoch=k,
                    from_s=k * 9.0,
                    until_s=k * 9.0 + 3,
                    events=k,
                    worst_s=1.0,
                    why=why,
                )
                for k in range(3_000)
            ),
            by_second=by_second,
        ),
        heat=HeatMap(
            cell_s=1.0,
            partitions=tuple(range(partitions)),
            max_s=tuple(times() for _ in range(partitions)),
            owners=tuple(
                tuple(f"payment-{(second // 977 + partition) % 7}" for second in range(seconds))
                for partition in range(partitions)
            ),
        ),
    )


def test_ten_hours_stay_under_five_megabytes_and_keep_their_peak(ten_hours: Result) -> None:
    text = html(ten_hours)
    assert len(text.encode()) < 5 * MEGABYTE
    worst = data_of(text)["series"]["max"]["high"]  # type: ignore[index]
    assert max(worst) == 77_700
    assert "The 2,000 that moved the most of 4,000." in text
    assert "2,500 smaller spells" in text
