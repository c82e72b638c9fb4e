"""Names and records that the services, the autoscaler and the load generator share. They share no other code."""
