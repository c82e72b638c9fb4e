"""Settings and metrics of KEDA's external scaler."""

from dataclasses import dataclass

from autoscaler.live.settings import Pages
from contracts.metrics import gauge
from contracts.settings import setting
from contracts.topics import ScaledGroup

EPOCH = gauge("tailpack_keda_plan_epoch", "", "Epoch of the newest known plan")
PLANNED = gauge("tailpack_keda_planned_replicas", "replicas", "Replica count of the newest known plan")
ANSWERED = gauge("tailpack_keda_metric", "", "Last value reported to KEDA")


@dataclass(frozen=True, kw_only=True)
class KedaSettings(Pages, ScaledGroup):
    """Settings of the external scaler: TAILPACK_GRPC_PORT, …"""

    grpc_host: str = setting("127.0.0.1")
    """Address for KEDA; 0.0.0.0 in a container."""
    grpc_port: int = setting(9090, least=0, most=65535)
    """Port for KEDA; 0: any free port, printed on standard error."""
    hpa_tolerance: float = setting(0.1, "share", least=0, below=1)
    """Tolerance of the HPA. While replicas are missing, the metric is outside it."""
