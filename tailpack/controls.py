"""Controls of a run's live page: change the load, kill a replica, pause the autoscaler. A token admits the user."""

import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
import psutil

from autoscaler.live.launchers.processes import read_pid_files
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.holds import Direction, Hold
from contracts.pages import Answer, http_error, not_found
from contracts.topics import PAYMENT_GROUP
from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from loadgen.faults import BURST, HOT_KEY
from loadgen.spec import LoadSpec
from report import replace_file
from tailpack.cli.holds import write_hold
from tailpack.errors import TailpackError

PATH: Final = "/live/control"
TOKEN: Final = "X-Tailpack-Token"  # noqa: S105  the name of a header
OWN_HOST: Final = re.compile(r"(127\.0\.0\.1|localhost):\d{1,5}")
LOADS: Final = {"load": (BURST, 3.0), "hot-key": (HOT_KEY, 1.0)}
"""Action → its kind of fault, and the highest value: the factor of the load, and the share of one customer."""
LEAD_S: Final = 5  # until a change of the load applies: the generator prepares events 3 s ahead
PLANNING_S: Final = 0.2
"""Longest time to compute a changed load, in which the generator sends nothing."""
PAUSE_S: Final = 3600.0


class Action(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request of the user. value: factor of the load, share of one customer, or 1 to pause and 0 to resume."""

    action: Literal["load", "hot-key", "kill", "pause"]
    value: float = 0.0
    replica: str = ""


class Controls:
    """Performs the actions of one run, one at a time. `done` has a line for each."""

    def __init__(self, connection: Connection, load: LoadSpec, folder: Path, log: Callable[[str], None]) -> None:
        """folder: of the run. log: is called with a sentence about each action."""
        self.token, self.done = secrets.token_urlsafe(24), list[str]()
        self.started_us: int | None = None  # time of second 0; None: the load has not started
        self._connection, self._load, self._folder, self._log = connection, load, folder, log
        self._changes: dict[str, list[tuple[int, float]]] = {action: [] for action in LOADS}
        """Action → second from which it applies, and its value."""
        self._hold: Hold | None = None
        self._lock = threading.Lock()

    def state(self) -> dict[str, Any]:
        """Return the keys of the live page's state."""
        hold = {"hold": str(self._hold)} if self._hold and self._hold.is_active(now_us()) else {}
        others = {"others": [{"error": "the load was changed on this page"}]} if any(self._changes.values()) else {}
        return {"interventions": self.done[-20:], **hold, **others}

    def answer(self, path: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Perform the action in `body`, and return {"done": …}, or {"error": …} with the reason."""
        host, origin = headers.get("Host", ""), headers.get("Origin", "")
        if path != PATH:
            return not_found(path, [PATH])
        if not OWN_HOST.fullmatch(host) or origin not in ("", f"http://{host}"):
            return http_error("403 Forbidden", "requests from other sites are refused")
        if not hmac.compare_digest(headers.get(TOKEN, "").encode(errors="replace"), self.token.encode()):
            return http_error("403 Forbidden", "the token is wrong; open the address that the run printed")
        with self._lock:
            try:
                text = self._perform(msgspec.json.decode(body, type=Action))
            except (TailpackError, InvalidSettingsError, OSError, ValueError, psutil.Error, *DECODE_ERRORS) as error:
                self._log(f"refused on the live page: {error}")
                return http_error("409 Conflict", str(error))
            self.done.append(text)
        self._log(f"an operator intervened: {text}")
        return Answer(msgspec.json.encode({"done": text}))

    def _perform(self, action: Action) -> str:
        second = -1.0 if self.started_us is None else (now_us() - self.started_us) / 1e6
        if not 0 <= second < self._load.duration_s:
            raise TailpackError("only possible while the load is sent")
        if action.action == "kill":
            text = self._kill(action.replica)
        elif action.action == "pause":
            text = self._pause(is_paused=action.value > 0)
        else:
            text = self._change_load(action.action, round(action.value, 2), ceil(second) + LEAD_S)
        return f"at {second:.0f} s {text}"

    def _kill(self, replica: str) -> str:
        running = {name: process for name, _, process in read_pid_files(self._folder / "replicas") if process}
        if replica not in running:
            raise TailpackError(f"{replica[:80]!r} does not run; running: {', '.join(running) or 'none'}")
        running[replica].kill()
        return f"killed {replica}"

    def _pause(self, *, is_paused: bool) -> str:
        direction = Direction.ALL if is_paused else Direction.NONE
        self._hold = write_hold(self._connection, PAYMENT_GROUP, direction, PAUSE_S, reason="on the live page")
        return "paused the autoscaler" if is_paused else "resumed the autoscaler"

    def _change_load(self, action: str, value: float, from_s: int) -> str:
        """Write the load file again, as if the scenario had this fault. The generator reads it within a second."""
        end_s, most = self._load.duration_s, LOADS[action][1]
        if not 0 <= value <= most:
            raise TailpackError(f"{action}: must be from 0 to {most:g}")
        if from_s >= end_s:
            raise TailpackError(f"a change needs {LEAD_S} s, and the load ends at {end_s} s")
        before = [one for one in self._changes[action] if one[0] < from_s]
        changes = self._changes | {action: [*before, (from_s, value)]}
        faults, first_s = list(self._load.faults), from_s
        for name, steps in changes.items():
            for (begin, by), (end, _) in pairwise([*steps, (end_s, 0.0)]):
                faults.append(f"{LOADS[name][0]} {begin}-{end} {by:g}")
                first_s = min(first_s, begin) if begin >= from_s - 1 else first_s  # it may not have been read yet
        changed = {"faults": tuple(faults), "changed_s": first_s}
        load, began_s = LoadSpec(**msgspec.structs.asdict(self._load) | changed), time.monotonic()
        load.schedule()
        if (passed_s := time.monotonic() - began_s) > PLANNING_S:
            raise TailpackError(f"to compute this load takes {passed_s:.1f} s, in which no event would be sent")
        replace_file(self._folder / "load.json", msgspec.json.encode(load))
        self._changes = changes
        what = "load {:g} × the schedule" if action == "load" else "{:g} of all events by one customer"
        return f"requested {what.format(value)}, from {from_s} s on"
