"""Packing heuristics against each other on random walks: what they move, what they cost, how long events wait."""
