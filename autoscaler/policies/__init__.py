"""Observation to decision: one module per family of policies, and guards that wrap any of them."""
