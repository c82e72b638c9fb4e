"""How fast the report is: a run of any size, what is asked of it, and who answers; each in a process of its own."""
