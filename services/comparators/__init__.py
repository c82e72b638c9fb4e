"""The same payment work under other runtimes: the opponents of `services.consumer` in the handover benchmark.

`python -m services.comparators` with TAILPACK_RUNTIME runs one replica of one of them. Shared by all: `settings`,
`preflight`, `payment` (the work), `tally` (progress), `stop` (signals). Shared by the three on librdkafka: `clients`,
`duties`, `output`, `server`; by the two of them whose replicas own partitions: `offsets`, `group_consumer`; by the two
with settings on the broker: `groups`. One module for each runtime: `cooperative_sticky`, `kip848`, `share`,
`faust_worker`. Every replica joins its group at once; there is no plan.
"""
