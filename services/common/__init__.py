"""What the services share: records, once-only effects, the Faust app, health, and how a process lives."""
