"""Trip records of New York's taxis become a trace: events per second, whole or for each partition."""
