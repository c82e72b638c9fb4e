"""Everything that a run on one machine needs: Java, Kafka and its jars, processes, topics."""
