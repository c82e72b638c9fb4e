"""Problems for an operator: logged as they begin and as they end, and listed on the health page between."""

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
"""So many ticks in a row are no accident."""

MAX_LISTED: Final = 5


def first_few(texts: Iterable[str], between: str) -> str:
    """Return the first texts, joined, and a mark where there are more."""
    few = list(islice(texts, MAX_LISTED + 1))
    return between.join((*few[:MAX_LISTED], *("…" for _ in few[MAX_LISTED:])))


def exit_status_of(own: logging.Logger, run: Callable[[], int]) -> int:
    """Return the exit status of a process: what `run` returns, or 2 where settings cannot be used: each is logged."""
    try:
        logs.configure(own.name, os.environ)
        return run()
    except InvalidSettingsError as wrong:
        problems = wrong.problems
    except PortTakenError as taken:
        problems = [str(taken)]
    except KafkaException as wrong:  # the client refuses its settings; unreachable brokers are waited for
        problems = [wrong.args[0].str()]
    for problem in problems:
        own.error(problem)
    return 2


class Problems:
    """One sentence for each problem, by the name of the component.

    say: called with new sentences. flag: called with each component and whether it has a problem.
    """

    def __init__(
        self, log_line: Callable[[str], None], set_condition: Callable[[str, bool], None] = lambda *_: None
    ) -> None:
        self._log_line = log_line
        self._set_condition = set_condition
        self._calls: dict[str, int] = {}
        self.now: Mapping[str, str] = MappingProxyType({})
        """Component → its problem. May be read from another thread."""
        self._serious: frozenset[str] = frozenset()

    @property
    def unhealthy_reason(self) -> str:
        """Why the autoscaler does not do its work; empty: it does. May be read from another thread."""
        serious, now = self._serious, self.now
        return "; ".join(why for what, why in now.items() if what in serious)

    def report(self, what: str, why: str, *, after: int = 1, unhealthy_after: int | None = None) -> None:
        """Report the problem of `what`; empty: none any more. It is logged when it begins or ends, not each time.

        after: it counts once reported so many times in a row. unwell_after: … and then it keeps the autoscaler from its
        work; None: it never does.
        """
        calls = self._calls[what] = self._calls.get(what, 0) + 1 if why else 0
        before, was_serious = self.now, what in self._serious
        shown = why if calls >= after else ""
        serious = unhealthy_after is not None and bool(shown) and calls >= unhealthy_after
        if shown != before.get(what, ""):
            others = {one: text for one, text in before.items() if one != what}
            self.now = MappingProxyType(others | ({what: shown} if shown else {}))
        if serious != was_serious:
            self._serious = self._serious ^ {what}
        if bool(shown) != (what in before):
            self._set_condition(what, bool(shown))
            self._log_line(f"{what}: {shown or 'well again'}")
        elif serious and not was_serious:
            self._log_line(f"{what}: UNWELL: {shown}")

    def run_step(
        self, what: str, step: Callable[[], object], *, fatal: type[Exception], unhealthy_after: int | None = None
    ) -> str:
        """Take a step; return its failure, else an empty text: one failure must not end the autoscaler.

        The first in a row is logged with its traceback. Raises `fatal`, which does end it.
        """
        failed = ""
        try:
            step()
        except fatal:
            raise
        except Exception as wrong:
            if not self._calls.get(what):
                log.error(f"{what} failed", exc_info=wrong)
            failed = f"failed: {type(wrong).__name__}: {wrong}"
        self.report(what, failed, unhealthy_after=unhealthy_after)
        return failed

    def query(self, what: str, question: Callable[[], bool], *, fatal: type[Exception]) -> bool:
        """Return the answer; no where asking fails. Raises `fatal`."""
        answers = list[bool]()
        self.run_step(what, lambda: answers.append(question()), fatal=fatal)
        return any(answers)
