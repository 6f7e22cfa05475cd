"""The caller's trace, from the header that W3C defines for it.

Source: www.w3.org/TR/trace-context, section 3.2 (Recommendation of 2021-11-23).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

TRACEPARENT = re.compile(
    "(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"
)


def trace_id_of(headers: Mapping[str, str]) -> str:
    """The caller's trace id, 32 hexadecimal digits; empty where it sent none that is valid."""
    found = TRACEPARENT.fullmatch(headers.get("traceparent", "").strip())
    return found[1] if found else ""
