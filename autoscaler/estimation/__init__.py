"""Estimates from measurements of the group: service rates (μ), rebalance times (t_r), start-up times and arrivals."""
