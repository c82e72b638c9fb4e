"""What a group has learned of its service rates, once it has served for a while."""

from dataclasses import dataclass

from autoscaler.simulator.settings import ServiceSettings


@dataclass(frozen=True, slots=True)
class LearnedRates:
    """Long-run service rates μ, events/s: the reciprocal of the mean service time, its overhead included."""

    service: ServiceSettings

    @property
    def group(self) -> float:
        """Of a typical replica: the mean over the speeds."""
        speeds = self.service.speeds
        return self._at_speed_1() * sum(speeds) / len(speeds)

    def of(self, replica: int) -> float | None:
        """Of replica number `replica`; None where all are alike."""
        speeds = self.service.speeds
        return None if len(set(speeds)) == 1 else self._at_speed_1() * speeds[replica % len(speeds)]

    def _at_speed_1(self) -> float:
        return 1 / (self.service.service_time_s + self.service.overhead_s)
