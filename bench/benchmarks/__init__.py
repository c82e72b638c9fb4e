"""The benchmarks of `tailpack dev bench`. Each one has its own file and an entry in BENCHMARKS."""

from typing import Final

BENCHMARKS: Final = {
    # name: (class as "module:name", example)
    "handover": ("bench.benchmarks.handover:Handover", "--quick"),
    "failover": ("bench.benchmarks.handover:Failover", "--quick --json"),
    "stage": ("bench.benchmarks.stage:Stage", "payment --instances 1,2"),
    "decide": ("bench.benchmarks.decide:Decide", "--json"),
    "report": ("bench.benchmarks.report:Report", "--events 100000"),
    "scale": ("bench.benchmarks.scale:Scale", "--sizes 10x100,50x1000"),
    "cluster": ("bench.benchmarks.cluster:ClusterRuns", "w1 --policy tail-aware --policy linear"),
}
