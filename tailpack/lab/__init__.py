"""The laboratory: simulate, compare and run policies from a notebook. It is the only API that lessons import.

Times are in seconds, rates in events/s, shares between 0 and 1, and costs in replica-minutes. Pictures are Matplotlib
figures, which notebooks show. Only `live` starts Java and Kafka.
"""

from autoscaler.policies.planning import scale_to
from report.picture import nines, picture
from tailpack.lab.comparison import Comparison, compare, random_partitions
from tailpack.lab.course import check, recorded
from tailpack.lab.queues import Burst, burst, spread
from tailpack.lab.runs import Run, live, read, simulate

__all__ = [
    "Burst", "Comparison", "Run", "burst", "check", "compare", "live", "nines", "picture",
    "random_partitions", "read", "recorded", "scale_to", "simulate", "spread",
]  # fmt: skip
