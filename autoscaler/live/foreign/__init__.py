"""Plans for other consumers. The autoscaler assigns their partitions itself, or the brokers do so by its plans."""
