"""Payment authorises each requested payment. It is deterministic and stateless, and runs on `PlanConsumer`."""
