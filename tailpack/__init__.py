"""The command line and the single-machine stack: the only package that may import all others."""
