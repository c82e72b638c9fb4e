"""Simulation: a consumer group as a model. The same controller runs it, and every event is served."""
