"""What is measured of the group, learned: service rates μ, rebalance times t_r."""
