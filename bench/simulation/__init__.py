"""Scenarios in the simulated world: built, run and judged by the measures that live runs are judged by."""
