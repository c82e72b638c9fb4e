"""Which of n sorted samples stands for a quantile, and which two enclose it, whatever the distribution is."""

import math
from functools import lru_cache
from typing import Final

CONFIDENCE: Final = 0.95
"""With which an interval holds the quantile."""


def next_at_or_below(q: float, samples: int) -> int:
    """Return rank k, from 1, so that the next sample is at or below the k-th smallest with probability at least q.

    k = ⌈(n + 1)·q⌉: each place of the next sample among the n seen is equally likely (Vovk, Gammerman, Shafer 2005,
    conformal prediction). k = n + 1 means that n samples are too few: the next may exceed all of them.
    """
    # 1e-9: (99 + 1)·0.99 is 99.00000000000001 in floating point, and its rank is 99
    return max(1, math.ceil((samples + 1) * q - 1e-9))


@lru_cache(maxsize=1024)
def enclosing(q: float, samples: int) -> tuple[int, int]:
    """Return ranks (low, high), from 1, between whose samples the q-quantile lies with probability CONFIDENCE.

    The number of samples below the quantile is binomial(n, q) (David, Nagaraja: Order Statistics, 7.1). Half of the
    doubt is left on each side. low 0 and high n + 1 mean that n samples are too few to bound it on that side.
    """
    doubt = (1 - CONFIDENCE) / 2
    log_odds, log_share = math.log(q) - math.log1p(-q), samples * math.log1p(-q)
    below = 0.0  # P(fewer than `rank` samples lie below the quantile)
    low = 0
    for rank in range(1, samples + 1):
        below += math.exp(log_share)
        if below <= doubt:
            low = rank
        if below >= 1 - doubt:
            return low, rank
        log_share += math.log((samples - rank + 1) / rank) + log_odds
    return low, samples + 1
