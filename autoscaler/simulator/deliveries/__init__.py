"""How a plan reaches the replicas: one small model for each way, all made of timed attaching and detaching."""
