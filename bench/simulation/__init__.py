"""Run scenarios in the simulator, and compute the same figures as for live runs."""
