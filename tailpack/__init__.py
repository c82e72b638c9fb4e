"""The command line and the one-machine stack: the only code that may import everything."""
