"""Types of record fields. Their limits are far above what any group needs. A record beyond a limit is refused."""

import re
from typing import Annotated, Final

from msgspec import Meta

MAX_EPOCH: Final = 10**15
MAX_EPOCH_LEAD: Final = 10**6
"""Largest accepted difference between an epoch that a replica reports and the epoch of the newest plan in the log."""
MAX_REASON_CHARS: Final = 100_000
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")  # name of a replica and of its files
NAME_RULE: Final = "must consist of letters, digits, '.', '_' and '-', and begin with a letter or digit"

Text = Annotated[str, Meta(max_length=1024)]
Texts = Annotated[tuple[Text, ...], Meta(max_length=64)]
Reason = Annotated[str, Meta(max_length=MAX_REASON_CHARS)]
Name = Annotated[str, Meta(pattern=rf"^{NAME.pattern}\Z")]
Names = Annotated[tuple[Name, ...], Meta(max_length=10_000)]
Moment = Annotated[int, Meta(ge=0, le=10**16)]  # microseconds since the epoch, up to the year 2286; also durations
Whole = Annotated[int, Meta(ge=-(10**16), le=10**16)]
Amount = Whole  # in the currency's minor unit (cents); Order decides which amounts are valid
Count = Annotated[int, Meta(ge=0, le=10**15)]
Counts = Annotated[tuple[Count, ...], Meta(max_length=64)]
Epoch = Annotated[int, Meta(ge=0, le=MAX_EPOCH)]
Generation = Annotated[int, Meta(ge=-1, le=2**31 - 1)]
Partition = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Partitions = Annotated[tuple[Partition, ...], Meta(max_length=1_000_000)]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, Meta(ge=0, le=1e6)]
Number = Annotated[float, Meta(ge=-1e15, le=1e15)]
