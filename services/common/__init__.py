"""Code that the services share: records, once-only effects, the Faust app, health and the service process."""
