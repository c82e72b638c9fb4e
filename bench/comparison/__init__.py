"""Policies against each other on the same seeds: many simulated runs on all cores, and what may be concluded."""
