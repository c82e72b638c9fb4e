"""Our own policy: plans by the events that would be late, and what a replica costs."""
