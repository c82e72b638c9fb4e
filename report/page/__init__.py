"""Show a run's result as a page, on the terminal and as tables, without Spark or Kafka."""
