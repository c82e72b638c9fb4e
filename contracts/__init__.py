"""Names and records that services, autoscaler and load generator agree on; they share nothing else."""
