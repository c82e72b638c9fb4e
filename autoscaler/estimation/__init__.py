"""Estimates from measurements of the group: service rates (μ) and rebalance times (t_r)."""
