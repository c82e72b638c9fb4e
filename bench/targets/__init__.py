"""What tail-aware is held to: worlds with a goal each, and what was reached beside the other policies."""
