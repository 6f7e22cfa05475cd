"""Ids for requests whose caller gives none, so that every answer can be told from another's."""

from __future__ import annotations

import itertools
import secrets

from service.client.forks import renew_in_children


class RequestIds:
    """Ids that no other client and no other process gives. Safe to share among threads."""

    def __init__(self) -> None:
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Give no id that the parent gives, in a child process."""
        self._prefix = secrets.token_hex(8)
        self._numbers = itertools.count()

    def following(self) -> str:
        """An id that was not given before."""
        return f"{self._prefix}-{next(self._numbers):x}"
