"""The same payment work under other runtimes: the opponents of `services.consumer` in the handover benchmark.

`python -m services.comparators` with TAILPACK_RUNTIME runs one replica of one of them. Every replica joins its group at
once; there is no plan.
"""
