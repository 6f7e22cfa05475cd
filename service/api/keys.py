"""Keys that callers must show, where the operator asks for them: read, checked, kept up to date.

Only their SHA-256 digests are kept. What a caller shows is compared with every one of them in
constant time, so the time of an answer tells nothing of how close a guess was.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
from collections.abc import Iterable
from pathlib import Path

from service.startup_errors import InvalidSetting

logger = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0

MIN_KEY_CHARS = 16
MAX_KEY_CHARS = 512
# What RFC 6750 allows in a bearer token.
KEY = re.compile(rf"[A-Za-z0-9._~+/-]{{{MIN_KEY_CHARS},{MAX_KEY_CHARS}}}=*")

MAX_FILE_BYTES = 1_048_576


def load_keys(listed: str | None, file: Path | None) -> ApiKeys | None:
    """The keys of both places; None where neither is named, and everybody is served.

    Args:
        listed: As `ApiKeys` has it.
        file: Likewise.

    Raises:
        InvalidSetting: As `ApiKeys` does.
    """
    return None if listed is None and file is None else ApiKeys(listed, file)


class ApiKeys:
    """The keys of a list and of a file; those of the file follow its changes."""

    def __init__(self, listed: str | None, file: Path | None) -> None:
        """Read them.

        Args:
            listed: Keys with commas between them.
            file: One key a line; lines that begin with # say nothing.

        Raises:
            InvalidSetting: No key, an unreadable file, or a key that is none. No message has one.
        """
        self._listed = _listed_digests(listed) if listed is not None else ()
        self._file = file
        self._seen = _stamp(file) if file is not None else None
        self._of_file = _file_digests(file) if file is not None else ()
        self._complained = False

    @property
    def n_keys(self) -> int:
        """How many there are."""
        return len(self._listed) + len(self._of_file)

    def holds(self, key: bytes) -> bool:
        """Whether it is one of them. Takes as long for any that is not."""
        digest = hashlib.sha256(key).digest()
        found = False
        for known in (*self._listed, *self._of_file):
            found |= hmac.compare_digest(known, digest)
        return found

    def follow_file(self) -> None:
        """Read the file again if it has changed. One that cannot be used leaves the keys alone."""
        if self._file is None:
            return
        try:
            stamp = _stamp(self._file)
            if stamp == self._seen:
                return
            self._of_file = _file_digests(self._file)
        except InvalidSetting as error:
            if not self._complained:
                logger.error("the keys stay as they were", extra={"reason": str(error)})
            self._complained = True
        else:
            self._seen, self._complained = stamp, False
            logger.info("keys read again", extra={"n_keys": self.n_keys})

    async def keep_following(self) -> None:
        """Follow the file until cancelled."""
        while self._file is not None:
            await asyncio.sleep(CHECK_EVERY_S)
            # In a thread: a volume that hangs must not hang the answers.
            await asyncio.to_thread(self.follow_file)


Stamp = tuple[int, int, int]


def _stamp(file: Path) -> Stamp:
    """What is another one once the file has been written, or another was put in its place."""
    try:
        found = file.stat()
    except OSError as error:
        raise _unreadable(file, error) from error
    return found.st_mtime_ns, found.st_size, found.st_ino


def _file_digests(file: Path) -> tuple[bytes, ...]:
    try:
        with file.open("rb") as opened:
            content = opened.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _unreadable(file, error) from error
    if len(content) > MAX_FILE_BYTES:
        raise InvalidSetting(f"api_keys_file: {file} is over {MAX_FILE_BYTES} bytes")
    lines = content.decode("utf-8", errors="replace").splitlines()
    places = ((f"line {number}", line.strip()) for number, line in enumerate(lines, 1))
    keys = [(place, line) for place, line in places if line and not line.startswith("#")]
    return _digests(f"api_keys_file: {file}", keys)


def _listed_digests(listed: str) -> tuple[bytes, ...]:
    keys = [key.strip() for key in listed.split(",")]
    places = [(f"key {number}", key) for number, key in enumerate(keys, 1) if key]
    return _digests("api_keys", places)


def _digests(source: str, keys: Iterable[tuple[str, str]]) -> tuple[bytes, ...]:
    digests = []
    for place, key in keys:
        if KEY.fullmatch(key) is None:
            raise InvalidSetting(
                f"{source}: {place} is no key; keys have {MIN_KEY_CHARS} to {MAX_KEY_CHARS} "
                "letters, digits and . _ ~ + / -"
            )
        digests.append(hashlib.sha256(key.encode("ascii")).digest())
    if not digests:
        raise InvalidSetting(f"{source}: has no key; leave it out to serve everybody")
    return tuple(dict.fromkeys(digests))


def _unreadable(file: Path, error: OSError) -> InvalidSetting:
    return InvalidSetting(f"api_keys_file: cannot read {file}: {error.strerror or error}")
