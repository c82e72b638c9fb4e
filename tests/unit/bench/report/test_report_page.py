"""The page is one file, safe against what stands in the data, and says what is not known."""

import re

import msgspec

from bench.report.example import example
from bench.report.page import html
from bench.report.result import Result


def changed(**values: object) -> Result:
    return msgspec.structs.replace(example(), **values)


def test_the_page_needs_nothing_beside_it() -> None:
    text = html(example())
    links = set(re.findall(r"https?://[^\s\"'<>)]+", text))
    assert links <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}, "only names of XML vocabularies"
    assert "<script" not in text
    assert len(text.encode()) < 1_000_000


def test_a_reason_cannot_break_out_of_its_cell() -> None:
    decision = msgspec.structs.replace(example().decisions[0], reason="<script>alert(1)</script> & more")
    text = html(changed(decisions=(decision,)))
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text


def test_every_decision_and_failure_is_told() -> None:
    text = html(example())
    assert text.count('class="reason"') == len(example().decisions)
    assert "killed by signal 9" in text


def test_colours_are_the_pages_own_so_that_both_schemes_work() -> None:
    svg = "".join(re.findall(r"<svg.*?</svg>", html(example()), flags=re.DOTALL))
    painted = set(re.findall(r"(?:fill|stroke): ([^;\"]+)", svg))
    assert painted
    assert all(colour == "none" or colour.startswith("var(--") for colour in painted), painted


def test_the_same_result_gives_the_same_page() -> None:
    assert html(example()) == html(example())


def test_a_run_of_which_little_is_known_still_has_a_page() -> None:
    nothing = example().series
    unknown = msgspec.structs.replace(
        nothing,
        requested_replicas=(None,) * len(nothing.arrivals),
        ready_replicas=(None,) * len(nothing.arrivals),
        lag=(None,) * len(nothing.arrivals),
        p99_s=(None,) * len(nothing.arrivals),
        max_s=(None,) * len(nothing.arrivals),
    )
    distribution = msgspec.structs.replace(example().distribution, share=(), latency_s=())
    text = html(
        changed(
            p50_s=None,
            max_s=None,
            replica_minutes=None,
            decisions=(),
            stages=(),
            failures=(),
            series=unknown,
            distribution=distribution,
        )
    )
    assert "No plan was written" in text
    assert "<dt>replica-minutes</dt><dd>–</dd>" in text


def test_a_measurement_that_does_not_stand_is_marked() -> None:
    text = html(changed(valid=False, problems=("the generator was late",)))
    assert '<span class="badge">not valid</span>' in text
    assert "<li>the generator was late</li>" in text
