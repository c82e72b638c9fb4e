"""What serves a share group: one queue for all, in two implementations."""
