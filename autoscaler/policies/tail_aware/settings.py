"""What `tail-aware` can be told. One set of defaults for every workload."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TailAwareSettings:
    """Raises ValueError naming every value that is out of range."""

    price: float = 0.05
    """What the budget of late events (1 − q of all) is worth, as a share of the work: to keep one event in time,
    price/(μ·(1 − q)) replica-seconds may be spent; 0.25 at μ = 200 and q = 0.999. Four times that when the budget runs
    out."""
    start_price_s: float = 1.0
    """Replica-seconds that starting a replica costs beside what it costs to run."""
    patience_s: float = 8.0
    """Longest that fewer replicas must have sufficed before one is stopped, the time of a start left out. It is learned
    from stops that were regretted, and 0 where there are none."""
    move_price_s: float = 0.02
    """Replica-seconds that moving a partition costs beside the events that it makes late: a gain that is no more than
    the noise of the forecast is not worth a round of the group."""
    lead_factor: float = 6.5
    """Handovers that take t_r are begun up to lead_factor·t_r early: a partition that moves early moves few events.
    Where handovers take 50 ms it has no effect."""

    def __post_init__(self) -> None:
        wrong = []
        if not self.price > 0:
            wrong.append(f"price = {self.price}: must be more than 0")
        for name in ("start_price_s", "patience_s", "move_price_s", "lead_factor"):
            if not getattr(self, name) >= 0:
                wrong.append(f"{name} = {getattr(self, name)}: must be 0 or more")
        if wrong:
            raise ValueError("; ".join(wrong))
