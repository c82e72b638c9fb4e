"""The live autoscaler: it observes a group on Kafka, and carries out plans with processes or pods."""
