"""Scenarios in the simulated world: built, run, and measured as live runs are."""
