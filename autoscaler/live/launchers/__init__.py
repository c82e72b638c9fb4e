"""What replicas are: TAILPACK_LAUNCHER chooses."""
