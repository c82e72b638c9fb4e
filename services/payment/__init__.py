"""Payment: authorises each requested payment. Deterministic and stateless; run by the plan-driven consumer."""
