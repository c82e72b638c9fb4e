"""Our own policy: compares plans by what they cost on the arrivals that may come."""
