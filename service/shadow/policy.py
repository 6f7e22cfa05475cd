"""What the shadow scores, and when it may: pure functions.

Theory of operation. The shadow computes one pair at a time, in one thread of its own, and starts
one only while nothing waits for the model that serves and a worker besides it stays idle. What
arrives meanwhile starts at once all the same, in a worker. So the most that an auction can lose is
half a core for as long as the one pair takes that runs, and after each pair the shadow rests.
"""

from __future__ import annotations

import hashlib

LOOK_EVERY_S = 0.005
"""How long the shadow waits while others are at work, and for an answer to leave before it begins.
It looks at two numbers, and only while it has work."""

DUTY = 0.25
"""Most of one core's time that the shadow takes: the chance that what arrives meets a pair of it
while it has enough to do."""

MAX_WAITING_PAIRS = 2_000
"""Pairs of requests that may wait: seconds of the shadow's work."""

MAX_WAITING_CHARS = 4_000_000
"""Characters of their texts, since a pair may be long: 16 MB at most."""


def is_sampled(request_id: str, share: float) -> bool:
    """Whether a request is scored by the shadow too: the same for the same id, everywhere.

    Args:
        request_id: The caller's, or the one that was made up.
        share: Of all requests, in 0-1.
    """
    content = request_id.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(content, digest_size=8).digest()
    return int.from_bytes(digest, "big") < share * 2**64


def may_start(queued_pairs: int, running_batches: int, workers: int) -> bool:
    """Whether the shadow may compute a pair now: nothing waits, and a worker stays idle beside it.

    Args:
        queued_pairs: Of the model that serves, of every class.
        running_batches: Likewise.
        workers: Batches that can run at once. One alone cannot stay idle: then it must be.
    """
    return queued_pairs == 0 and running_batches <= max(0, workers - 2)


def rest_s(took_s: float) -> float:
    """How long the shadow does nothing after a pair that took so long."""
    return max(LOOK_EVERY_S, took_s * (1 / DUTY - 1))


def fits(waiting_pairs: int, waiting_chars: int, n_pairs: int, n_chars: int) -> bool:
    """Whether another request may wait.

    Args:
        waiting_pairs: Of those that wait or are at work.
        waiting_chars: Likewise.
        n_pairs: Of the request.
        n_chars: Likewise.
    """
    return (
        waiting_pairs + n_pairs <= MAX_WAITING_PAIRS
        and waiting_chars + n_chars <= MAX_WAITING_CHARS
    )
