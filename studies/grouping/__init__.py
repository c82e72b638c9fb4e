"""The grouping paper: its figures again, and what a grouping does to the tail."""
