"""Made-up scores of packers, for tests of what is said about them."""

from studies.packing.contestants import THE_TWELVE
from studies.packing.latency_study import Delay, summarise_delays
from studies.packing.published import ROUND_ROBIN_P90_S
from studies.packing.result import LatencyStudy, Study
from studies.packing.study import Score, Walk, summarise

SETTINGS = ("keep_in_place", "keep_in_place (roomy)")


def score(rscore: float, cbs: float = 0.0, consumers: float = 100.0) -> Score:
    return Score(rscore=rscore, cbs=cbs, consumers=consumers, moved=rscore * 2, forced_rscore=rscore / 4)


def stream_scores(**changed: Score) -> dict[str, Score]:
    """Return scores of one stream: all of the twelve alike, keep-in-place far off, unless said otherwise."""
    return dict.fromkeys(THE_TWELVE, score(30.0, 0.3)) | dict.fromkeys(SETTINGS, score(99.0, 0.9)) | changed


def study_of(*scores: dict[str, Score], partitions: int = 200, delta: int = 5) -> Study:
    walks = [Walk(partitions, delta, 501, 1, number) for number in range(len(scores))]
    return summarise(walks, scores)


def delay(p90_delayed_s: float | None, *, consumers: float = 15.0) -> Delay:
    delayed = 0.0 if p90_delayed_s is None else 0.1
    return Delay(consumers=consumers, p90_delayed_s=p90_delayed_s, mean_s=delayed, share_delayed=delayed, p90_s=delayed)


def stream_delays(**changed: Delay) -> dict[str, Delay]:
    """Return delays of one stream: those of the paper, unless said otherwise."""
    published = {f"kd_{n}": delay(p90_s) for n, p90_s in ROUND_ROBIN_P90_S.items()}
    return {"mwf": delay(4.52)} | published | changed


def latency_of(*delays: dict[str, Delay]) -> LatencyStudy:
    return summarise_delays(delays)
