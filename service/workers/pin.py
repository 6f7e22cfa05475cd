"""A bundle held as it is now, whatever is renamed, deleted or put in its place later.

An open file outlives its name, so that nothing has to be copied: not the weights, which may lie on
another file system than the supervisor's folder, where no hard link leads.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from service.startup_errors import BundleCorrupt, BundleMissing

MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True, eq=False)
class Pin:
    """One bundle, held.

    Attributes:
        path: A folder that other processes of this user open as the bundle, while this one lives.
    """

    path: Path
    _root: Path
    _open: tuple[int, ...]

    @classmethod
    def of(cls, bundle: Path, root: Path) -> Self:
        """Hold the files that the bundle's manifest lists; `drop` lets go.

        The manifest is copied: its hashes then tell of a file that was overwritten in place, which
        an open file does not outlive. What is wrong with it, or is absent, is for who opens it.

        Args:
            bundle: Its folder, links followed.
            root: Made here; holds `path`, which ends as the bundle's own path does.

        Raises:
            BundleMissing: There is no manifest.
            BundleCorrupt: A file cannot be read.
            OSError: Nothing can be written at `root`.
        """
        path = root.joinpath(*bundle.parts[1:])
        manifest, files = _opened(bundle)
        try:
            path.mkdir(parents=True)
            (path / MANIFEST).write_bytes(manifest)
            for name, file in files.items():
                (path / name).symlink_to(f"/proc/{os.getpid()}/fd/{file}")
        except BaseException:
            _let_go(root, files.values())
            raise
        return cls(path, root, tuple(files.values()))

    def drop(self) -> None:
        """Let go of the files; who has some open keeps them."""
        _let_go(self._root, self._open)


def files_of(manifest: bytes) -> dict[str, str]:
    """What a manifest lists: the sha256 of each file, by its name; nothing where it is damaged."""
    try:
        listed = json.loads(manifest)["files_sha256"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}
    # A name that leads elsewhere is refused by who opens the bundle.
    return {name: sha256 for name, sha256 in listed if Path(name).name == name != MANIFEST}


def _opened(bundle: Path) -> tuple[bytes, dict[str, int]]:
    """The manifest, and the other files by name: all of one folder, also where it is renamed."""
    files: dict[str, int] = {}
    try:
        if not (bundle / MANIFEST).is_file():
            raise BundleMissing(bundle)
        folder = os.open(bundle, os.O_PATH | os.O_DIRECTORY)
        try:
            with os.fdopen(os.open(MANIFEST, os.O_RDONLY, dir_fd=folder), "rb") as file:
                manifest = file.read()
            for name in files_of(manifest):
                _open_in(folder, name, files)
        finally:
            os.close(folder)
    except OSError as error:
        _close(files.values())
        raise BundleCorrupt(f"bundle at {bundle} cannot be read: {error}") from error
    return manifest, files


def _open_in(folder: int, name: str, files: dict[str, int]) -> None:
    try:
        # What is no file, such as a pipe, must not be waited for.
        file = os.open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd=folder)
    except (FileNotFoundError, ValueError):  # absent, or a name that no file can have
        return
    if stat.S_ISREG(os.fstat(file).st_mode):
        files[name] = file
    else:
        os.close(file)


def _let_go(root: Path, files: Iterable[int]) -> None:
    shutil.rmtree(root, ignore_errors=True)
    _close(files)


def _close(files: Iterable[int]) -> None:
    for file in files:
        os.close(file)
