"""Experiments on a live group: a broker, replicas as processes, a load that never waits, plans, and what came of it."""
