"""One setting at a time over a range: where a policy stops keeping its promise, and what it costs until there."""
