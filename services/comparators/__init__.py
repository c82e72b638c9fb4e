"""The work of Payment on librdkafka's consumer. The handover benchmark compares `services.consumer` with it.

`python -m services.comparators` runs one replica; TAILPACK_RUNTIME chooses the rebalance protocol. There are no plans.
"""
