"""The second half of a plan: carrying it out on a real Kafka, with real processes."""
