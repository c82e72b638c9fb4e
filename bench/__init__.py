"""Scenarios, measures and reports: how a run is described and judged."""
