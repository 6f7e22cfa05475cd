"""A key by which a proxy can send the same query to the same replica, whose cache knows it."""

from __future__ import annotations

import hashlib

AFFINITY_HEADER = "X-Affinity-Key"
KEY_DIGITS = 16  # 64 bits: two queries with one key would only share a replica


def affinity_key(query: str) -> str:
    """The first digits of the SHA-256 of the query in UTF-8, as all clients of adrel's send it.

    Args:
        query: As it is sent; half a surrogate pair counts as its three bytes.
    """
    return hashlib.sha256(query.encode("utf-8", "surrogatepass")).hexdigest()[:KEY_DIGITS]
