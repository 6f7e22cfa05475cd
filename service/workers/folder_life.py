"""The supervisor's folder: made, held by all who use it, removed; what killed ones left, too.

A folder holds a copy of the weights. Where the supervisor and all workers are killed at once nobody
is left to remove it, so the next start does. A lock (flock) tells a folder that is left from one
that is in use: the kernel frees it with its last holder, however that ended, and a number of a
process that may have come to mean another one is never asked.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from service.startup_errors import NoSharedFolder
from service.workers.shared_folder import GRAPHS

logger = logging.getLogger(__name__)

MEMORY = "/dev/shm"  # noqa: S108  # where containers can write whose root cannot be written

PREFIX = "adrel-workers-"
NAME = re.compile(re.escape(PREFIX) + "[a-z0-9_]{8}")
"""As `tempfile.mkdtemp` makes them."""


@contextlib.contextmanager
def own_folder() -> Iterator[Path]:
    """A new folder that only this user can read, until the block ends.

    Raises:
        NoSharedFolder: Nothing can be written where temporary files belong.
    """
    for place in _places():
        remove_left_behind(place)
    folder, lock = _made()
    try:
        yield folder
    finally:
        remove_folder(folder)
        os.close(lock)


def hold(folder: Path) -> int:
    """Let no start take the folder for one that was left, as long as this process lives.

    Returns:
        The descriptor that holds it; closing it lets go.

    Raises:
        OSError: There is no such folder any more.
    """
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    # A file system without locks has none to be found free either: nothing there is ever removed.
    with contextlib.suppress(OSError):
        fcntl.flock(lock, fcntl.LOCK_SH)
    return lock


def remove_folder(folder: Path) -> None:
    """Without a trace; harmless when another has done so."""
    shutil.rmtree(folder, ignore_errors=True)


def remove_left_behind(place: Path) -> None:
    """Remove folders of this user's that bear our name and that no process holds.

    Args:
        place: Where they may be; what cannot be read or removed there is left.
    """
    with contextlib.suppress(OSError):
        for found in list(os.scandir(place)):
            if NAME.fullmatch(found.name):
                _remove_if_left_behind(Path(found.path))


def _remove_if_left_behind(folder: Path) -> None:
    with contextlib.suppress(OSError):
        # Neither a file nor a link, wherever that leads.
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            if os.fstat(lock).st_uid == os.getuid():
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_folder(folder)
                logger.info("removed what a killed service left", extra={"folder": str(folder)})
        finally:
            os.close(lock)


def _made() -> tuple[Path, int]:
    for place in _places():
        try:
            return _made_in(place)
        except OSError as error:
            why = error
    raise NoSharedFolder(why)


def _made_in(place: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
        try:
            lock = hold(folder)
        except FileNotFoundError:
            continue  # another start found it before it was held
        try:
            (folder / GRAPHS).mkdir()
        except FileNotFoundError:
            os.close(lock)  # likewise, and held it until it was gone
        except OSError:
            os.close(lock)
            raise
        else:
            return folder, lock


def _places() -> list[Path]:
    """Where folders may be, the best first."""
    try:
        return [Path(tempfile.gettempdir()), Path(MEMORY)]
    except FileNotFoundError:  # nothing that it tries can be written
        return [Path(MEMORY)]
