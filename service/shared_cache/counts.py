"""What happened between this process and the shared cache, for whoever tells of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field


class LookupResult(enum.StrEnum):
    """What the shared cache gave for a pair that the local one did not have.

    `INVALID`: a value that is none of ours. `TIMEOUT`: nothing in time. `ERROR`: redis refused, or
    the connection ended. `SKIPPED`: it was not asked, since the breaker is open or time too short.
    """

    HIT = "hit"
    MISS = "miss"
    TIMEOUT = "timeout"
    ERROR = "error"
    INVALID = "invalid"
    SKIPPED = "skipped"


class WriteResult(enum.StrEnum):
    """What became of a computed score. `DROPPED`: never sent. `FAILED`: redis did not take it."""

    WRITTEN = "written"
    DROPPED = "dropped"
    FAILED = "failed"


@dataclass(slots=True)
class SharedCacheCounts:
    """Pairs since the start.

    Attributes:
        lookups: By result.
        writes: By result.
    """

    lookups: dict[LookupResult, int] = field(default_factory=lambda: dict.fromkeys(LookupResult, 0))
    writes: dict[WriteResult, int] = field(default_factory=lambda: dict.fromkeys(WriteResult, 0))
