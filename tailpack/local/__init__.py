"""A run on one machine: Java, Kafka and its jars, the processes and their topics."""
