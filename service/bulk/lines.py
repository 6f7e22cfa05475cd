"""Lines of a text file with their places, in bounded memory however long a line is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import BinaryIO

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN_BYTES = 1000  # of a line that is over the limit
SKIP_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Line:
    """One line.

    Attributes:
        number: The first of the file is 1.
        start: Byte of the file at which it starts.
        content: With its line feed. Of a line over the limit, only the beginning.
        too_long: It is over the limit.
    """

    number: int
    start: int
    content: bytes
    too_long: bool


class Lines:
    """Takes lines off a binary file; some can be put back. Only line feeds end a line."""

    def __init__(
        self,
        file: BinaryIO,
        limit_bytes: int,
        first_number: int = 1,
        on_bytes: Callable[[bytes], object] = lambda _: None,
    ) -> None:
        """Begin where the file stands.

        Args:
            file: At the start of a line.
            limit_bytes: Longest line that is kept whole.
            first_number: Number of that line.
            on_bytes: Told all bytes that are read, in order.
        """
        self._file = file
        self._limit_bytes = limit_bytes
        self._number = first_number
        self._start = file.tell()
        self._on_bytes = on_bytes
        self._ahead: deque[Line] = deque()

    def take(self) -> Line | None:
        """The next line; None at the end."""
        if self._ahead:
            return self._ahead.popleft()
        content = self._file.readline(self._limit_bytes + 1)
        if not content:
            return None
        self._on_bytes(content)
        n_bytes = len(content)
        too_long = n_bytes > self._limit_bytes
        if too_long:
            if not content.endswith(b"\n"):
                n_bytes += self._skip()
            content = content[:SHOWN_BYTES]
        if self._start == 0:
            content = content.removeprefix(BYTE_ORDER_MARK)  # some tools write one
        line = Line(self._number, self._start, content, too_long)
        self._number += 1
        self._start += n_bytes
        return line

    def put_back(self, lines: Sequence[Line]) -> None:
        """Let these come next, in this order."""
        self._ahead.extendleft(reversed(lines))

    def _skip(self) -> int:
        """Bytes up to the end of the line."""
        n_bytes = 0
        while part := self._file.readline(SKIP_BYTES):
            self._on_bytes(part)
            n_bytes += len(part)
            if part.endswith(b"\n"):
                break
        return n_bytes
