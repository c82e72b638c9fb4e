"""What services, autoscaler and load generator must agree on: names and records. They meet here and nowhere else."""
