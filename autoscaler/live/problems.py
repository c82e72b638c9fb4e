"""Problems for an operator: logged when they begin and end, and listed on the health page in between."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Final

from confluent_kafka import KafkaException

from contracts import logs
from contracts.pages import PortTakenError
from contracts.validation import InvalidSettingsError

log = logging.getLogger(__name__)

PERSISTENT_TICKS: Final = 3
"""Consecutive ticks with a problem after which the problem counts as persistent."""
MAX_LISTED: Final = 5


def first_few(texts: Iterable[str], between: str) -> str:
    """Return the first five texts joined by `between`, then "…" if there are more."""
    few = list(islice(texts, MAX_LISTED + 1))
    return between.join((*few[:MAX_LISTED], *("…" for _ in few[MAX_LISTED:])))


def exit_status_of(own: logging.Logger, run: Callable[[], int]) -> int:
    """Run a process and return its exit status: that of `run`, or 2 after logging each unusable setting."""
    try:
        logs.configure(own.name, os.environ)
        return run()
    except InvalidSettingsError as error:
        problems = error.problems
    except PortTakenError as error:
        problems = [str(error)]
    except KafkaException as error:  # the client rejects its settings; unreachable brokers raise nothing
        problems = [error.args[0].str()]
    for problem in problems:
        own.error(problem)
    return 2


class Problems:
    """Current problems: one sentence for each component.

    warn: called with each log line. set_condition: called with a component and whether it has a problem.
    """

    def __init__(self, warn: Callable[[str], None], set_condition: Callable[..., None] = lambda *_: None) -> None:
        self._warn, self._set_condition = warn, set_condition
        self._calls: dict[str, int] = {}
        self.current: Mapping[str, str] = MappingProxyType({})
        """Component → its problem. May be read from another thread."""
        self._unhealthy: frozenset[str] = frozenset()

    @property
    def unhealthy_reason(self) -> str:
        """Problems that stop the autoscaler from doing its work; empty: none. May be read from another thread."""
        unhealthy, current = self._unhealthy, self.current
        return "; ".join(problem for component, problem in current.items() if component in unhealthy)

    def report(self, component: str, problem: str, *, after: int = 1, unhealthy_after: int | None = None) -> None:
        """Set the problem of a component; empty: it has recovered. Its beginning, end and unhealthy state are logged.

        after: number of consecutive reports from which the problem is shown. unhealthy_after: number from which it
        makes the autoscaler unhealthy; None: it never does.
        """
        calls = self._calls[component] = self._calls.get(component, 0) + 1 if problem else 0
        before, was_unhealthy = self.current, component in self._unhealthy
        shown = problem if calls >= after else ""
        unhealthy = unhealthy_after is not None and bool(shown) and calls >= unhealthy_after
        if shown != before.get(component, ""):
            others = {name: text for name, text in before.items() if name != component}
            self.current = MappingProxyType(others | ({component: shown} if shown else {}))
        if unhealthy != was_unhealthy:
            self._unhealthy = self._unhealthy ^ {component}
        if bool(shown) != (component in before):
            self._set_condition(component, bool(shown))
            self._warn(f"{component}: {shown or 'recovered'}")
        elif unhealthy and not was_unhealthy:
            self._warn(f"{component}: unhealthy: {shown}")

    def run_step(
        self, component: str, step: Callable[[], object], *, fatal: type[Exception], unhealthy_after: int | None = None
    ) -> str:
        """Run a step. If it fails, report and return the failure, else an empty text. The autoscaler continues.

        The first of several consecutive failures is logged with its traceback. Exceptions of type `fatal` are raised.
        """
        failure = ""
        try:
            step()
        except fatal:
            raise
        except Exception as error:
            if not self._calls.get(component):
                log.error(f"{component} failed", exc_info=error)
            failure = f"failed: {type(error).__name__}: {error}"
        self.report(component, failure, unhealthy_after=unhealthy_after)
        return failure

    def query(self, component: str, question: Callable[[], bool], *, fatal: type[Exception]) -> bool:
        """Return the result of `question`, or False if it fails. Exceptions of type `fatal` are raised."""
        answers = list[bool]()
        self.run_step(component, lambda: answers.append(question()), fatal=fatal)
        return any(answers)
