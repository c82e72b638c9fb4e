"""Payment: authorises each requested payment. Deterministic and stateless; runs on the plan-following consumer."""
