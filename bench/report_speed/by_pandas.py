"""The figures as somebody gets them from pandas: three columns in memory, sorted once by second and latency."""

import numpy as np
import numpy.typing as npt
import pandas as pd

from bench.report_speed.answer import RANKS, SECOND_RANKS, Answer, Figures, Question

IntArray = npt.NDArray[np.int64]
NEEDED = ["intended_us", "done_us", "dead_letters"]


def answer(question: Question) -> Answer:
    """Return the figures. Memory grows with the events, all of which are in it at once."""
    rows = pd.read_parquet(question.events, columns=NEEDED)
    intended = (rows["intended_us"] - question.started_us) // 1_000_000
    arrivals = intended.value_counts().sort_index()
    finished = rows["done_us"].notna()
    refused = int((~finished & (rows["dead_letters"] > 0)).sum())
    lost = int((~finished).sum()) - refused
    if lost or refused:
        rows, intended = rows[finished], intended[finished]
    done_us = rows["done_us"].astype("int64")
    done = ((done_us - question.started_us) // 1_000_000).value_counts().sort_index()
    latency = pd.DataFrame({"second": intended, "us": done_us - rows["intended_us"]}).sort_values(["second", "us"])
    ordered = latency["us"].to_numpy()
    within = _by_second(ordered, latency["second"].value_counts().sort_index())
    everything = np.sort(ordered)
    return Answer(
        figures=Figures(
            events=len(finished) - refused,
            in_sla=int((ordered <= question.target_us).sum()),
            lost=lost,
            refused=refused,
            latency_us=tuple(int(everything[_rank(len(everything), ppm) - 1]) for ppm in RANKS if len(everything)),
            seconds=tuple(
                (int(second), int(count), *within.get(int(second), (None, None, None)))
                for second, count in arrivals.items()
            ),
            done=tuple((int(second), int(count)) for second, count in done.items()),
        )
    )


def _by_second(ordered: IntArray, counts: "pd.Series[int]") -> dict[int, tuple[int, int, int]]:
    """Return second → SECOND_RANKS. ordered: latencies by second, then by size. counts: how many each second has."""
    begins = (counts.cumsum() - counts).to_numpy()
    at = [ordered[begins + _rank(counts.to_numpy(), ppm) - 1].tolist() for ppm in SECOND_RANKS]
    return dict(zip(counts.index.tolist(), zip(*at, strict=True), strict=True))


def _rank(total: "IntArray | int", ppm: int) -> "IntArray":
    """Return ⌈q·n⌉, at least 1."""
    return np.maximum(1, (np.asarray(total, dtype=np.int64) * ppm + 999_999) // 1_000_000)
