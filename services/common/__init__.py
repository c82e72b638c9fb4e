"""What the Faust services share: settings, the app factory, once-only effects, health, and how a process runs."""
