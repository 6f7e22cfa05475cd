"""Keys that callers or operators must show, where they are asked for: read, checked, up to date.

Only their SHA-256 digests are kept. What a caller shows is compared with every one of them in
constant time, so the time of an answer tells nothing of how close a guess was.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from service.api.keys_file import KeysFile, Reading, digests_of
from service.daemon_thread import in_daemon_thread
from service.startup_errors import InvalidSetting

logger = logging.getLogger(__name__)

CHECK_EVERY_S = 1.0

LOOK_TIMEOUT_S = 5.0
"""For one look at the file, which takes well under a millisecond unless its volume hangs."""


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
        look_timeout_s: float = LOOK_TIMEOUT_S,
    ) -> None:
        """Read them.

        Args:
            listed: Keys with commas between them.
            file: One key a line; lines that begin with # say nothing.
            setting: What messages call the list, and the file with `_file` behind it.
            wall_s: Unix time.
            look_timeout_s: A file that takes longer counts as one that cannot be used.

        Raises:
            InvalidSetting: No key, an unreadable file, or a key that is none. No message has one.
        """
        self._listed = _listed_digests(setting, listed) if listed is not None else ()
        self._file = KeysFile(file, f"{setting}_file") if file is not None else None
        first = self._file.read() if self._file is not None else None
        self._seen = first.stamp if first is not None else None
        self._of_file = first.digests if first is not None else ()
        self._look: asyncio.Future[Reading | None] | None = None
        self._look_timeout_s = look_timeout_s
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

    async def follow_file(self) -> None:
        """Read the file again if it has changed. One that cannot be used leaves the keys alone.

        A look that takes too long is given up, and what it finds later is not used; as long as its
        thread is stuck, there is no other one.
        """
        if self._file is None or (self._look is not None and not self._look.done()):
            return
        try:
            reading = await self._look_at(self._file)
        except InvalidSetting as error:
            if not self._failed:
                logger.error("the keys stay as they were", extra={"reason": str(error)})
            self._failed = True
            return
        if reading is not None:
            self._seen, self._of_file = reading.stamp, reading.digests
            self._failed, self._loaded_s = False, self._wall_s()
            logger.info("keys read again", extra={"n_keys": self.n_keys})

    async def _look_at(self, file: KeysFile) -> Reading | None:
        seen = None if self._failed else self._seen
        try:
            self._look = look = in_daemon_thread(lambda: file.read(seen), "keys")
        except RuntimeError as error:
            raise file.failure(str(error)) from error
        await asyncio.wait({look}, timeout=self._look_timeout_s)
        if not look.done():
            raise file.failure(f"no answer within {self._look_timeout_s:g} s")
        return look.result()

    async def keep_following(self) -> None:
        """Follow the file until cancelled."""
        while self._file is not None:
            await asyncio.sleep(CHECK_EVERY_S)
            await self.follow_file()


def _listed_digests(setting: str, listed: str) -> tuple[bytes, ...]:
    keys = [key.strip() for key in listed.split(",")]
    places = [(f"key {number}", key) for number, key in enumerate(keys, 1) if key]
    return digests_of(setting, places)


NO_KEYS = Keys()
