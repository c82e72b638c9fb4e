"""Our own policy: compares plans by their cost under the arrivals that may follow."""
