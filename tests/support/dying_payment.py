"""A Payment replica that is killed at a step of its transactions: `python -m dying_payment`.

The environment variable DIE_AFTER=method[:times] names a method of aiokafka's producer. The process ends directly after
this call.
"""

import os
import signal
from typing import Any

from aiokafka import AIOKafkaProducer

from services.payment.__main__ import main, payment_stage

name, _, times = os.environ["DIE_AFTER"].partition(":")
left = int(times or 1)
step = getattr(AIOKafkaProducer, name)


async def last_step(self: Any, *arguments: Any, **named: Any) -> Any:
    """Call the method, and end the process if this was the named call."""
    global left  # noqa: PLW0603
    answer = await step(self, *arguments, **named)
    if self._txn_manager and self._txn_manager.transactional_id:  # the reports have a plain producer
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
    return answer


setattr(AIOKafkaProducer, name, last_step)
main(payment_stage, "payment")
