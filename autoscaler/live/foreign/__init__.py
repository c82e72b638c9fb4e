"""Plans for consumers that are not ours: the autoscaler leads their classic group and hands out its partitions."""
