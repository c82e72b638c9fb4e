"""The metrics of KEDA's external scaler."""

from contracts.metrics import gauge

EPOCH = gauge("tailpack_keda_plan_epoch", "", "Epoch of the newest plan that is known")
PLANNED = gauge("tailpack_keda_planned_replicas", "replicas", "Replicas that this plan wants")
ANSWERED = gauge("tailpack_keda_metric", "", "Value that KEDA was answered last")
