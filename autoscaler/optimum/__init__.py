"""The least that serving known events can cost: schedules found with the whole future known, and proofs beside them."""
