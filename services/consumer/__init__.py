"""A Kafka consumer that obeys a plan: which replicas form the group, who owns which partition. Knows no payments.

`placement` and `assignor` carry out a plan inside the group; `plan_reader` brings plans; `membership` joins, rejoins
and leaves; `worker` serves one event at a time; `output`, `ledger` and `commits` keep the promise that nothing is lost.
`replica` puts them together.
"""
