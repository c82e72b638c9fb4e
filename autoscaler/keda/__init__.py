"""External scaler for KEDA: reports the replica count of the newest plan to the HorizontalPodAutoscaler (HPA)."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read at the import of gRPC; errors are logged here, once
