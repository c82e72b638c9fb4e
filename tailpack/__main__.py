"""`python -m tailpack` is the `tailpack` command."""

from tailpack.cli import main

main()
