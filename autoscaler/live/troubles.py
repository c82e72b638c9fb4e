"""What an operator should know now: said as it begins and as it ends, and listed on the health page between."""

from collections.abc import Callable, Mapping
from types import MappingProxyType


class Troubles:
    """One sentence for each thing that is in trouble.

    say: called with what is new, in sentences. flag: called with each thing and whether it is in trouble.
    """

    def __init__(self, say: Callable[[str], None], flag: Callable[[str, bool], None] = lambda *_: None) -> None:
        self._say = say
        self._flag = flag
        self._now: Mapping[str, str] = MappingProxyType({})

    @property
    def now(self) -> Mapping[str, str]:
        """What is in trouble → why. May be read from another thread."""
        return self._now

    def tell(self, what: str, why: str) -> None:
        """State what is wrong with `what`; empty: nothing any more. Said when that begins or ends, not each time."""
        before = self._now
        if why == before.get(what, ""):
            return
        others = {one: text for one, text in before.items() if one != what}
        self._now = MappingProxyType(others | ({what: why} if why else {}))
        if why and what in before:
            return
        self._flag(what, bool(why))
        self._say(f"{what}: {why or 'well again'}")
