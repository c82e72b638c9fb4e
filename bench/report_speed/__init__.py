"""How fast the report is: a run of any size to be reported on, from files or from Kafka."""
