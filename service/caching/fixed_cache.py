"""A cache whose memory is all taken at the start and never grows: set-associative, like a CPU's.

A dictionary of Python objects needs some 200 bytes for a logit of 4, grows for hours until it
reaches its bound, and gives every full garbage collection more to walk. Here an entry is a row of
a few arrays: 16 bytes of digest, 4 of age, and the payload. A key can live in one of `WAYS` places
of its set; the place that was used least recently is overwritten. All keys of a request are looked
up at once.

Hennessy & Patterson, "Computer Architecture: A Quantitative Approach", appendix B, on placement.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WAYS = 8
DIGEST_BYTES = 16
AGE_BYTES = 4

Payloads = NDArray[np.uint8]


@dataclass(slots=True)
class CacheCounts:
    """What happened since the start.

    Attributes:
        hits: Keys that were found.
        misses: Keys that were not.
        joined: Of the misses, those that somebody else waited for already; told by the user.
        evictions: Entries that were overwritten by others.
        entries: Entries now.
    """

    hits: int = 0
    misses: int = 0
    joined: int = 0
    evictions: int = 0
    entries: int = 0


class Digester:
    """Keys of texts that share a beginning: 128 bits of BLAKE2b (RFC 7693)."""

    def __init__(self, *beginning: str) -> None:
        """Take in the beginning; each part's length goes in too, so that no two mean the same."""
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        for part in beginning:
            content = part.encode("utf-8", "surrogatepass")
            self._hash.update(len(content).to_bytes(8, "little"))
            self._hash.update(content)

    def keys(self, endings: Iterable[str]) -> list[bytes]:
        """One key for each ending."""
        keys = []
        for ending in endings:
            whole = self._hash.copy()
            whole.update(ending.encode("utf-8", "surrogatepass"))
            keys.append(whole.digest())
        return keys


class FixedCache:
    """Payloads of one size by 16-byte keys, within a budget of bytes that is taken at once."""

    def __init__(self, budget_bytes: int, payload_bytes: int) -> None:
        """Allocate.

        Args:
            budget_bytes: Most memory; under one set's worth the cache holds nothing.
            payload_bytes: Of each entry.

        Raises:
            MemoryError: The machine does not give so much.
        """
        set_bytes = WAYS * (DIGEST_BYTES + AGE_BYTES + payload_bytes)
        self._n_sets = budget_bytes // set_bytes
        try:
            self._digests = np.empty((self._n_sets, WAYS, 2), np.uint64)
            self._used_at = np.empty((self._n_sets, WAYS), np.uint32)
            self._payloads = np.empty((self._n_sets, WAYS, payload_bytes), np.uint8)
        except ValueError as error:  # more than an address can name
            raise MemoryError(str(error)) from error
        for array in (self._digests, self._used_at, self._payloads):
            array.fill(0)  # also makes the memory resident, now and not while serving
        self._now = 0  # counts calls, modulo 2 ** 32
        self.counts = CacheCounts()

    @property
    def n_bytes(self) -> int:
        """Memory that it holds."""
        return self._digests.nbytes + self._used_at.nbytes + self._payloads.nbytes

    @property
    def enabled(self) -> bool:
        """It can hold anything."""
        return self._n_sets > 0

    def lookup(self, keys: Sequence[bytes]) -> tuple[NDArray[np.bool_], Payloads]:
        """Find many keys at once; what is found counts as used.

        Args:
            keys: n >= 1 keys of 16 bytes.

        Returns:
            found: (n,).
            payloads: (n, payload_bytes); a row that was not found means nothing.
        """
        n = len(keys)
        if not self.enabled:
            self.counts.misses += n
            return np.zeros(n, np.bool_), np.empty((n, self._payloads.shape[2]), np.uint8)
        digests, sets = self._places(keys)
        found, ways = self._find(digests, sets)
        self._now = (self._now + 1) % 2**32
        self._used_at[sets[found], ways[found]] = self._now
        n_found = int(np.count_nonzero(found))
        self.counts.hits += n_found
        self.counts.misses += n - n_found
        return found, self._payloads[sets, ways]

    def insert(self, keys: Sequence[bytes], payloads: Payloads) -> None:
        """Keep entries, each in place of the one of its set that was used least recently.

        Args:
            keys: n >= 1 keys of 16 bytes. Two that get the same place leave the second there.
            payloads: (n, payload_bytes).
        """
        if not self.enabled:
            return
        digests, sets = self._places(keys)
        found, ways = self._find(digests, sets)
        self._now = (self._now + 1) % 2**32
        # Unsigned, so that ages stay right when the counter starts again from 0.
        ages = np.uint32(self._now) - self._used_at[sets]
        ways = np.where(found, ways, ages.argmax(axis=1))
        places = np.unique((sets * WAYS + ways)[~found])
        n_evicted = int(np.count_nonzero(self._digests.reshape(-1, 2)[places].any(axis=1)))
        self.counts.evictions += n_evicted
        self.counts.entries += len(places) - n_evicted
        self._digests[sets, ways] = digests
        self._used_at[sets, ways] = self._now
        self._payloads[sets, ways] = payloads

    def _places(self, keys: Sequence[bytes]) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
        """(n, 2) digests and (n,) sets."""
        digests = np.frombuffer(b"".join(keys), np.uint64).reshape(len(keys), 2)
        return digests, (digests[:, 0] % self._n_sets).astype(np.intp)

    def _find(
        self, digests: NDArray[np.uint64], sets: NDArray[np.intp]
    ) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
        """(n,) whether each one is there, and (n,) in which way."""
        candidates = self._digests[sets]  # (n, WAYS, 2)
        match = (candidates[:, :, 0] == digests[:, :1]) & (candidates[:, :, 1] == digests[:, 1:])
        ways = match.argmax(axis=1)
        return match[np.arange(len(sets)), ways], ways
