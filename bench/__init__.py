"""Scenarios and experiments: what is asked of the pipeline and of policies, and what comes out."""
