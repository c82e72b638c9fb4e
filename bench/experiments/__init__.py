"""Experiments with simulated policies: what is asked, the results that workers compute and keep, and their tables."""
