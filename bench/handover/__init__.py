"""Handovers judged: what a partition's change of owner costs its events, and those of all others. Pure."""
