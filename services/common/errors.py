"""How a service fails in front of its user: one line and an exit code."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from services.common.records import Effect


class ServiceError(Exception):
    """The service cannot go on. The message says what, where and what to do; the exit code is 1."""


class RefusedError(ValueError):
    """A record that this stage will not process, with every reason why. It becomes a dead letter.

    effects: what else is to be written because of the refusal.
    """

    def __init__(
        self, reasons: tuple[str, ...], order_id: str | None = None, effects: "tuple[Effect, ...]" = ()
    ) -> None:
        self.reasons = reasons
        self.order_id = order_id
        self.effects = effects
        super().__init__("; ".join(reasons))
