"""Measure what a partition's change of owner costs. `group` serves a load, `steps` changes it, `figures` analyses."""
