"""What stands in the shared cache, byte by byte: pure functions of a model's facts.

key    "adrel:1:" model version ":" machine ":" digest of the pair (16 bytes)
value  format (1 byte) | truncated (1 byte, 0 or 1) | k logits, float32 little endian | CRC-32 of
       the key and all before it, little endian

The logits are those that the model gave, so that a score from here equals the computed one to the
bit. The model's version is derived from its content, so another model's scores are never found.
`machine` says what this machine computes for the golden pairs: processors with other instructions
and other runtimes round otherwise, and share nothing. The checksum takes the key in, so that an
answer to another question is no answer.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Logits = NDArray[np.float32]

PREFIX = b"adrel:1:"  # a new form of key or value gets a new number
FORMAT = 1
HEAD_BYTES = 2
CHECKSUM_BYTES = 4


@dataclass(frozen=True, slots=True)
class Found:
    """What an answer holds.

    Attributes:
        rows: Indices of the m pairs that are known, rising.
        logits: (m, k) float32, finite.
        truncated: (m,) some of the text had not fitted.
        n_invalid: Values that are none of ours.
    """

    rows: list[int]
    logits: Logits
    truncated: list[bool]
    n_invalid: int


def machine_of(golden_logits: Logits) -> str:
    """Short text that is the same where the same model gives the same logits, to the last bit.

    Args:
        golden_logits: What the model gives for its golden pairs here.
    """
    content = np.ascontiguousarray(golden_logits, "<f4").tobytes()
    return hashlib.blake2b(content, digest_size=4).hexdigest()


class EntryFormat:
    """Keys and values of one model on machines that compute alike."""

    def __init__(self, model_version: str, machine: str, n_logits: int) -> None:
        """Fix what all entries have in common.

        Args:
            model_version: Derived from the model's content.
            machine: As `machine_of` gives it.
            n_logits: k logits of a pair.
        """
        self._beginning = PREFIX + f"{model_version}:{machine}:".encode()
        self._n_logits = n_logits
        self._value_bytes = HEAD_BYTES + 4 * n_logits + CHECKSUM_BYTES

    def key(self, digest: bytes) -> bytes:
        """Where a pair is kept, by its key in the local cache."""
        return self._beginning + digest

    def pack(self, digest: bytes, logits: Logits, truncated: bool) -> bytes:
        """What is kept of a pair.

        Args:
            digest: Its key in the local cache.
            logits: (k,) float32.
            truncated: Some of its text did not fit.
        """
        content = bytes((FORMAT, truncated)) + logits.astype("<f4").tobytes()
        return content + self._checksum(digest, content)

    def unpack(self, digests: Sequence[bytes], values: Sequence[object]) -> Found:
        """What is known of n pairs. A value that is not exactly one of ours is no score.

        Args:
            digests: The pairs' keys in the local cache.
            values: One for each: None, or what came, which may be anything.
        """
        rows, sound = [], []
        for row, (digest, value) in enumerate(zip(digests, values, strict=True)):
            if value is not None and isinstance(value, bytes) and self._is_sound(digest, value):
                rows.append(row)
                sound.append(value)
        table = np.frombuffer(b"".join(sound), np.uint8).reshape(len(sound), self._value_bytes)
        logits = np.ascontiguousarray(table[:, HEAD_BYTES:-CHECKSUM_BYTES]).view("<f4")
        finite = np.isfinite(logits).all(axis=1)
        n_asked_in_vain = sum(value is None for value in values)
        return Found(
            [row for row, keep in zip(rows, finite, strict=True) if keep],
            logits[finite].astype(np.float32, copy=False),
            table[finite, 1].astype(np.bool_).tolist(),
            len(values) - n_asked_in_vain - int(np.count_nonzero(finite)),
        )

    def _is_sound(self, digest: bytes, value: bytes) -> bool:
        return (
            len(value) == self._value_bytes
            and value[0] == FORMAT
            and value[1] <= 1
            and value[-CHECKSUM_BYTES:] == self._checksum(digest, value[:-CHECKSUM_BYTES])
        )

    def _checksum(self, digest: bytes, content: bytes) -> bytes:
        return zlib.crc32(content, zlib.crc32(self.key(digest))).to_bytes(CHECKSUM_BYTES, "little")
