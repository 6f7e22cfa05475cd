"""What the workers read in the supervisor's folder: which bundle serves now, and its weights."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path

BUNDLE = "bundle"
GRAPHS = "graphs"


def real(path: Path) -> Path:
    """Where the links lead; a loop, which leads nowhere, stays what it is for who opens it."""
    return Path(os.path.realpath(path))


class PinnedBundle:
    """The bundle that all workers load, whatever happens to the operator's folder meanwhile.

    A worker that starts in another's place must not be the first to serve what was put there since.
    """

    def __init__(self, folder: Path, bundle: Path) -> None:
        """Pin what the operator's folder is now.

        Args:
            folder: The supervisor's.
            bundle: The operator's: a folder, or a link to one.
        """
        self._link = folder / BUNDLE
        self._bundle = bundle
        self._pinned = real(bundle)
        self._point_to(self._pinned)

    def advance(self) -> Path:
        """Pin what the operator's folder is now.

        Returns:
            What was pinned before, for `go_back`.
        """
        before = self._pinned
        self._point_to(real(self._bundle))
        return before

    def go_back(self, before: Path) -> None:
        """Pin that again."""
        self._point_to(before)

    def refresh(self) -> None:
        """Where the pinned folder is gone, the operator's is better than none."""
        if not self._pinned.exists():
            self._point_to(real(self._bundle))

    def tidy(self) -> None:
        """Forget the weights of other bundles; who has some open keeps them."""
        with contextlib.suppress(OSError, ValueError, KeyError):  # they go with the folder
            manifest = json.loads((self._link / "manifest.json").read_bytes())
            for graph in (self._link.parent / GRAPHS).iterdir():
                if graph.name != manifest["files_sha256"]["model.onnx"]:
                    shutil.rmtree(graph)

    def _point_to(self, target: Path) -> None:
        fresh = self._link.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(target)
        fresh.replace(self._link)
        self._pinned = target
