"""What the workers read in the supervisor's folder: which bundle serves now, and its weights."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from pathlib import Path

from service.workers.pin import MANIFEST, Pin, files_of

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
        """Pin what the operator's folder holds now.

        Args:
            folder: The supervisor's.
            bundle: The operator's: a folder, or a link to one.

        Raises:
            StartupError: No bundle is there, or it cannot be read.
            OSError: The supervisor's folder cannot be written.
        """
        self._folder = folder
        self._bundle = bundle
        self._numbers = itertools.count(1)
        self._pins: list[Pin] = []
        self._serve(self._new_pin())

    def advance(self) -> Pin:
        """Pin what the operator's folder holds now, beside what was pinned before.

        Returns:
            What was pinned before, for `go_back`.

        Raises:
            StartupError: As at the start; all stays as it was.
            OSError: Likewise.
        """
        before = self._pinned
        self._serve(self._new_pin())
        return before

    def go_back(self, before: Pin) -> None:
        """Pin that again; what was tried instead is let go."""
        tried = self._pinned
        self._serve(before)
        self._pins.remove(tried)
        tried.drop()

    def tidy(self) -> None:
        """Let go of other bundles and their weights; who has some open keeps them."""
        for pin in self._pins:
            if pin is not self._pinned:
                pin.drop()
        self._pins = [self._pinned]
        with contextlib.suppress(OSError, KeyError):  # they go with the folder
            serves = files_of((self._pinned.path / MANIFEST).read_bytes())["model.onnx"]
            for graph in (self._folder / GRAPHS).iterdir():
                if graph.name != serves:
                    shutil.rmtree(graph)

    def _new_pin(self) -> Pin:
        pin = Pin.of(real(self._bundle), self._folder / f"{BUNDLE}-{next(self._numbers)}")
        self._pins.append(pin)
        return pin

    def _serve(self, pin: Pin) -> None:
        link = self._folder / BUNDLE
        fresh = link.with_suffix(".new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(pin.path)
        fresh.replace(link)
        self._pinned = pin
