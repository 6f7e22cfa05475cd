"""Files that are there whole or not at all."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

UNFINISHED = ".unfinished-"
"""How the names begin of files that are being written, or were when a process was killed."""


@contextlib.contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which takes its name, and that of an older one, when all is on the disk.

    Two may write the same name at once: the last one stays. An `OSError` in between, such as that
    of a full disk, names the file.
    """
    unfinished = path.with_name(f"{UNFINISHED}{path.name}-{uuid.uuid4().hex[:12]}")
    try:
        with unfinished.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        if error.filename is None:  # a write knows no name
            error.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a small file: see `atomic_file`."""
    with atomic_file(path) as file:
        file.write(content)
