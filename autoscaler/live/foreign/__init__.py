"""Plans for consumers that are not ours: the autoscaler, or the brokers by its plans, assign them."""
