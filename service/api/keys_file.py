"""A file of keys: read if it is one that can be, and if it has changed; what is a key."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from service.startup_errors import InvalidSetting

MIN_KEY_CHARS = 16
MAX_KEY_CHARS = 512
# What RFC 6750 allows in a bearer token.
KEY = re.compile(rf"[A-Za-z0-9._~+/-]{{{MIN_KEY_CHARS},{MAX_KEY_CHARS}}}=*")

MAX_FILE_BYTES = 1_048_576

Stamp = tuple[int, int, int, int]
"""What is another one once the file has been written or given other rights, or was replaced."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a look at the file found.

    Attributes:
        stamp: Of the file that was read.
        digests: SHA-256 of its keys.
    """

    stamp: Stamp
    digests: tuple[bytes, ...]


class KeysFile:
    """One key a line; its errors name the setting that it comes from."""

    def __init__(self, path: Path, setting: str) -> None:
        """Read nothing yet.

        Args:
            path: Of the file.
            setting: That it was named by.
        """
        self._path = path
        self._setting = setting

    def read(self, seen: Stamp | None = None) -> Reading | None:
        """Its keys; None where it is still the one with the stamp that was seen.

        It is opened whether it has changed or not, so that one that may not be read any more shows.

        Raises:
            InvalidSetting: It cannot be read, is no regular file, is over `MAX_FILE_BYTES`, has no
                key or something that is none. No message has a key.
        """
        try:
            # A pipe without a writer would hold whoever opens it, for ever.
            descriptor = os.open(self._path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
            try:
                found = os.fstat(descriptor)
                if not stat.S_ISREG(found.st_mode):
                    raise self.failure("it is not a regular file")
                stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)
                if stamp == seen:
                    return None
                with os.fdopen(descriptor, "rb", closefd=False) as opened:
                    content = opened.read(MAX_FILE_BYTES + 1)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self.failure(error.strerror or str(error)) from error
        source = f"{self._setting}: {self._path}"
        if len(content) > MAX_FILE_BYTES:
            raise InvalidSetting(f"{source} is over {MAX_FILE_BYTES} bytes")
        # Some editors begin a file with a byte order mark.
        lines = content.decode("utf-8-sig", errors="replace").splitlines()
        places = ((f"line {number}", line.strip()) for number, line in enumerate(lines, 1))
        keys = [(place, line) for place, line in places if line and not line.startswith("#")]
        return Reading(stamp, digests_of(source, keys))

    def failure(self, why: str) -> InvalidSetting:
        """The error of a file that cannot be read."""
        return InvalidSetting(f"{self._setting}: cannot read {self._path}: {why}")


def digests_of(source: str, keys: Iterable[tuple[str, str]]) -> tuple[bytes, ...]:
    """SHA-256 of each key, once.

    Args:
        source: What messages call the place that they come from.
        keys: Where each stands, and itself.

    Raises:
        InvalidSetting: There is none, or one that is no key.
    """
    digests = []
    for place, key in keys:
        if KEY.fullmatch(key) is None:
            raise InvalidSetting(
                f"{source}: {place} is no key; keys have {MIN_KEY_CHARS} to {MAX_KEY_CHARS} "
                "letters, digits and . _ ~ + / -"
            )
        digests.append(hashlib.sha256(key.encode("ascii")).digest())
    if not digests:
        raise InvalidSetting(f"{source}: has no key; leave it out to ask for none")
    return tuple(dict.fromkeys(digests))
