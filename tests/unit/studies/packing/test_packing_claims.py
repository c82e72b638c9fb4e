"""A verdict on each claim of the paper, by what the streams say."""

from packing_scores import delay, latency_of, score, stream_delays, stream_scores, study_of

from studies.packing.claims import claims
from studies.packing.result import Claim, LatencyStudy, Study

LATENCY = latency_of(stream_delays())


def published(mwf: float = 9.0, cbs: float = 0.118, nfd: float = 20.0, delta: int = 5) -> Study:
    """Return a study as the paper has it."""
    scores = stream_scores(
        mwf=score(mwf, cbs), mbf=score(12.0, 0.05), mbfp=score(15.0, 0.0), nfd=score(nfd, 0.24, 110.0)
    )
    return study_of(scores, delta=delta)


def verdict(words: str, *studies: Study, latency: LatencyStudy = LATENCY) -> Claim:
    """Return the one claim that has these words."""
    (found,) = (claim for claim in claims(studies, latency) if words in claim.claim)
    return found


def test_the_headline_is_reproduced_where_a_stream_such_as_ours_may_have_given_it() -> None:
    found = verdict("moves less load than the best existing algorithm, δ = 5", published())
    assert (found.verdict, found.published, found.why) == ("reproduced", "-55.0 %", "against NFD")
    assert found.ours.startswith("-55.0 %")
    assert verdict("algorithm, δ = 5", published(mwf=15.0)).verdict == "differs"


def test_the_price_names_both_baselines() -> None:
    found = verdict("needs more consumers, δ = 5", published())
    assert found.verdict == "reproduced"
    assert "against the least of each iteration; against NFD, as in the line above: -9.1 %" in found.why


def test_what_was_not_asked_for_cannot_be_checked() -> None:
    found = verdict("algorithm, δ = 25", published())
    assert (found.verdict, found.why) == ("cannot be checked", "needs --partitions 200 --delta 25")
    other = study_of(stream_scores(), partitions=32)
    assert verdict("algorithm, δ = 5", other).verdict == "cannot be checked", "the claim is about 200 partitions"
    assert verdict("Pareto front", other).verdict == "cannot be checked"
    assert verdict("grows with δ", published()).verdict == "cannot be checked"


def test_the_front_names_who_is_missing_and_where() -> None:
    assert verdict("Pareto front", published()).verdict == "reproduced"
    found = verdict("Pareto front", published(), published(cbs=0.4, nfd=8.0, delta=25))
    assert (found.verdict, found.ours) == ("differs", "not MWF at δ = 25")


def test_growth_names_who_does_not_grow() -> None:
    bigger = study_of({name: score(one.rscore + 40) for name, one in stream_scores().items()}, delta=25)
    assert verdict("grows with δ", published(), bigger).verdict == "reproduced"
    found = verdict("grows with δ", published(), study_of(stream_scores(nfd=score(19.0)), delta=25))
    assert found.verdict == "differs"
    assert "NFD 20.0 → 19.0" in found.ours
    assert "MWF 9" not in found.ours


def test_constant_loads_say_nothing_about_growth() -> None:
    assert verdict("grows with δ", study_of(stream_scores(), delta=0), published()).verdict == "cannot be checked"


def test_kd_n_is_reproduced_where_the_paper_lies_among_our_streams() -> None:
    assert verdict("kd_15").verdict == "reproduced"
    apart = latency_of(*(stream_delays(kd_15=delay(p90_s)) for p90_s in (500.0, 700.0, 900.0)))
    found = verdict("kd_15", latency=apart)
    assert found.verdict == "differs"
    assert found.ours == "700 (500 … 900) s, delayed in 3 of 3 streams"


def test_kd_31_never_waited_in_the_paper() -> None:
    assert verdict("kd_31").verdict == "reproduced"
    found = verdict("kd_31", latency=latency_of(stream_delays(kd_31=delay(17.0)), stream_delays()))
    assert (found.verdict, found.ours) == ("differs", "delayed in 1 of 2 streams")
    assert verdict("kd_24", latency=latency_of(stream_delays(kd_24=delay(None)))).verdict == "differs"


def test_mwf_waits_as_long_as_everybody_who_waits() -> None:
    found = verdict("MWF: 90th percentile")
    assert found.verdict == "reproduced"
    assert "says nothing" in found.why
    assert verdict("MWF: consumers").verdict == "reproduced"
    assert verdict("MWF: consumers", latency=latency_of(stream_delays(mwf=delay(4.5, consumers=19.0)))).verdict == (
        "differs"
    )
