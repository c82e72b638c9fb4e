"""The report job: a run's topics, or its Parquet files, become result.json. The only place that imports PySpark."""
