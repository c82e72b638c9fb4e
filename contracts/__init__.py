"""Names and records that the services, the autoscaler and the load generator share. These three share no other code."""
