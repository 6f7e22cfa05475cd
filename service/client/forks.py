"""What a forked process must not share with its parent.

A connection that two processes read from gives one of them the other's scores, and a lock that a
thread of the parent holds at the fork is never released in the child.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Renewed(Protocol):
    """Something that is made anew in a child process."""

    def renew(self) -> None:
        """Called in the child, before anything else runs there."""


_all: weakref.WeakSet[Renewed] = weakref.WeakSet()


def renew_in_children(one: Renewed) -> None:
    """Have `one` renewed in every process that is forked from this one, while it lives."""
    _all.add(one)


def _renew_all() -> None:
    for one in list(_all):
        one.renew()


if hasattr(os, "register_at_fork"):  # systems without fork have no such trouble
    os.register_at_fork(after_in_child=_renew_all)
