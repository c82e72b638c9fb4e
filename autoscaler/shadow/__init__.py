"""The shadow: it runs a policy next to a group that another autoscaler scales, and reports what would be saved."""
