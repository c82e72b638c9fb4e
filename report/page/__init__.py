"""A run's result as numbers: its schema, the page, the terminal table. Knows no Spark and no Kafka."""
