"""KEDA's external scaler: tells the HorizontalPodAutoscaler how many replicas the newest plan wants."""

import os

os.environ.setdefault("GRPC_VERBOSITY", "NONE")  # read as gRPC is imported: what matters is told once, in our words
