"""DS2 (Kalavri et al., OSDI 2018) as the autoscaler of the Flink Kubernetes Operator carries it out for one source.

Written after its documentation ("Autoscaler", "Configuration reference") and checked against the sources of
flink-autoscaler: `JobVertexScaler`, `ScalingMetricEvaluator`, `AutoScalerUtils`, `DelayedScaleDown`,
`AutoScalerOptions`. A vertex here is the group, its parallelism the count, a subtask a replica, a rescale a rebalance.
"""

from autoscaler.policies.flink_ds2.policy import FlinkDs2
from autoscaler.policies.flink_ds2.settings import FlinkDs2Settings

__all__ = ["FlinkDs2", "FlinkDs2Settings"]
