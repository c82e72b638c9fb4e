"""What runs on one machine: Java, Kafka and its jars, the processes of a run and their topics."""
