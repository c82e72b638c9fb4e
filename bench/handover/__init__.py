"""What a partition's change of owner costs: act on a live group, analyse what was served, show the figures.

Act: setup, experiment (with children, load, plans, readers), steps; courses puts them together.
Analyse: evidence, windows, analyse, outcomes, show.
"""
