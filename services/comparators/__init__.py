"""The same payment work on librdkafka's consumer, with which the handover benchmark compares `services.consumer`.

`python -m services.comparators` runs one replica; TAILPACK_RUNTIME chooses the rebalance protocol. There is no plan.
"""
