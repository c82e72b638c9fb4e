"""Where the controller and its group break first: many light members, many partitions, one broker."""
