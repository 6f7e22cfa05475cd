"""Keys that callers or operators must show, where they are asked for: read, checked, up to date.

Only their SHA-256 digests are kept. What a caller shows is compared with every one of them in
constant time, so the time of an answer tells nothing of how close a guess was.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from service.startup_errors import InvalidSetting

logger = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0

MIN_KEY_CHARS = 16
MAX_KEY_CHARS = 512
# What RFC 6750 allows in a bearer token.
KEY = re.compile(rf"[A-Za-z0-9._~+/-]{{{MIN_KEY_CHARS},{MAX_KEY_CHARS}}}=*")

MAX_FILE_BYTES = 1_048_576


def load_keys(listed: str | None, file: Path | None, setting: str = "api_keys") -> ApiKeys | None:
    """The keys of both places; None where neither is named, and none is asked for.

    Args:
        listed: As `ApiKeys` has it.
        file: Likewise.
        setting: Likewise.

    Raises:
        InvalidSetting: As `ApiKeys` does.
    """
    return None if listed is None and file is None else ApiKeys(listed, file, setting)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that are asked for.

    Attributes:
        callers: On the port for scores; None where everybody is served.
        operators: On the admin port; None where it takes the callers' keys, if there are any.
    """

    callers: ApiKeys | None = None
    operators: ApiKeys | None = None

    @property
    def of_admin_port(self) -> ApiKeys | None:
        """Those that the admin port asks for."""
        return self.operators or self.callers


class ApiKeys:
    """The keys of a list and of a file; those of the file follow its changes."""

    def __init__(
        self,
        listed: str | None,
        file: Path | None,
        setting: str = "api_keys",
        wall_s: Callable[[], float] = time.time,
    ) -> None:
        """Read them.

        Args:
            listed: Keys with commas between them.
            file: One key a line; lines that begin with # say nothing.
            setting: What messages call the list, and the file with `_file` behind it.
            wall_s: Unix time.

        Raises:
            InvalidSetting: No key, an unreadable file, or a key that is none. No message has one.
        """
        self._listed = _listed_digests(setting, listed) if listed is not None else ()
        self._file = _KeysFile(file, f"{setting}_file") if file is not None else None
        self._seen = self._file.stamp() if self._file is not None else None
        self._of_file = self._file.digests() if self._file is not None else ()
        self._failed = False
        self._wall_s = wall_s
        self._loaded_s = wall_s()

    @property
    def n_keys(self) -> int:
        """How many there are."""
        return len(self._listed) + len(self._of_file)

    @property
    def loaded_s(self) -> float:
        """Unix time at which they were read; the file's last change that was taken."""
        return self._loaded_s

    @property
    def file_failed(self) -> bool:
        """Whether the file cannot be used as it is, so that its keys of before hold."""
        return self._failed

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
            stamp = self._file.stamp()
            if stamp == self._seen and not self._failed:
                return
            self._of_file = self._file.digests()
        except InvalidSetting as error:
            if not self._failed:
                logger.error("the keys stay as they were", extra={"reason": str(error)})
            self._failed = True
        else:
            self._seen, self._failed, self._loaded_s = stamp, False, self._wall_s()
            logger.info("keys read again", extra={"n_keys": self.n_keys})

    async def keep_following(self) -> None:
        """Follow the file until cancelled."""
        while self._file is not None:
            await asyncio.sleep(CHECK_EVERY_S)
            # In a thread: a volume that hangs must not hang the answers.
            await asyncio.to_thread(self.follow_file)


Stamp = tuple[int, int, int]


class _KeysFile:
    """One key a line; its errors name the setting that it comes from."""

    def __init__(self, path: Path, setting: str) -> None:
        self._path = path
        self._setting = setting

    def stamp(self) -> Stamp:
        """What is another one once the file has been written, or another was put in its place."""
        try:
            found = self._path.stat()
        except OSError as error:
            raise self._unreadable(error) from error
        return found.st_mtime_ns, found.st_size, found.st_ino

    def digests(self) -> tuple[bytes, ...]:
        """Of its keys."""
        try:
            with self._path.open("rb") as opened:
                content = opened.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise self._unreadable(error) from error
        source = f"{self._setting}: {self._path}"
        if len(content) > MAX_FILE_BYTES:
            raise InvalidSetting(f"{source} is over {MAX_FILE_BYTES} bytes")
        lines = content.decode("utf-8", errors="replace").splitlines()
        places = ((f"line {number}", line.strip()) for number, line in enumerate(lines, 1))
        keys = [(place, line) for place, line in places if line and not line.startswith("#")]
        return _digests(source, keys)

    def _unreadable(self, error: OSError) -> InvalidSetting:
        return InvalidSetting(
            f"{self._setting}: cannot read {self._path}: {error.strerror or error}"
        )


def _listed_digests(setting: str, listed: str) -> tuple[bytes, ...]:
    keys = [key.strip() for key in listed.split(",")]
    places = [(f"key {number}", key) for number, key in enumerate(keys, 1) if key]
    return _digests(setting, places)


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
        raise InvalidSetting(f"{source}: has no key; leave it out to ask for none")
    return tuple(dict.fromkeys(digests))


NO_KEYS = Keys()
