r"""RESP2, the bytes that redis speaks, as far as this service does: strict, and bounded before use.

Written here for what was measured, see ARCHITECTURE.md: redis-py's client takes twice the time of
the event loop, and hiredis takes an array's length on trust, so that an answer of
`*2147483647\r\n` held the event loop up for seconds, in which no auction ended.

Source: redis.io/docs/latest/develop/reference/protocol-spec
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from service.shared_cache.commands import Answer, Command, Refusal

# Of one answer. The longest, of 1,000 pairs, has some 30 kB.
MAX_ANSWER_BYTES = 1_048_576

MAX_LENGTH_BYTES = 16  # of the line that says a length

_ARRAY, _STRING, _ERROR = b"*$-"

# An answer that is not whole. None is one: a key that is not there.
_NOT_WHOLE = object()

_NONE, _TO_COME = -1, -2


class NotRedis(Exception):
    """What came is not what redis answers to our commands."""


def packed(commands: Sequence[Command]) -> bytes:
    """Commands as they go over the wire, one after the other."""
    parts = []
    for command in commands:
        parts.append(b"*%d\r\n" % len(command))
        parts += [b"$%d\r\n%b\r\n" % (len(word), word) for word in command]
    return b"".join(parts)


class AnswerReader:
    """Answers from bytes that come in pieces of any size."""

    def __init__(self) -> None:
        self._unread = b""

    def feed(self, data: bytes) -> Iterator[Answer]:
        """The answers that are whole with this piece, in order.

        Raises:
            NotRedis: It is none, or too long to be one of ours.
        """
        unread, start = self._unread + data, 0
        while start < len(unread):
            answer, end = _answer(unread, start)
            if answer is _NOT_WHOLE:
                break
            start = end
            yield answer
        self._unread = unread[start:]
        if len(self._unread) > MAX_ANSWER_BYTES:
            raise NotRedis("an answer is too long")


def _answer(unread: bytes, start: int) -> tuple[Answer, int]:
    """One answer and where it ends."""
    if unread[start] != _ARRAY:
        return _item(unread, start)
    n_items, end = _length(unread, start)
    if n_items < 0:
        return (None if n_items == _NONE else _NOT_WHOLE), end
    items = []
    for _ in range(n_items):
        item, end = _item(unread, end)
        if item is _NOT_WHOLE:
            return item, end
        items.append(item)
    return items, end


def _item(unread: bytes, start: int) -> tuple[Answer, int]:
    """An answer that is no array, and where it ends."""
    if start >= len(unread):
        return _NOT_WHOLE, start
    kind = unread[start]
    if kind == _STRING:
        n_bytes, begin = _length(unread, start)
        if n_bytes < 0:
            return (None if n_bytes == _NONE else _NOT_WHOLE), begin
        end = begin + n_bytes
        after = unread[end : end + 2]
        if after != b"\r\n":
            if len(after) == 2:
                raise NotRedis("a string does not end where it should")
            return _NOT_WHOLE, end
        return unread[begin:end], end + 2
    if kind not in b"+-:":
        raise NotRedis("what came is not redis' protocol")
    end = unread.find(b"\r\n", start)
    if end < 0:
        return _NOT_WHOLE, end
    line = unread[start + 1 : end]
    return (Refusal(line.decode(errors="replace")) if kind == _ERROR else line), end + 2


def _length(unread: bytes, start: int) -> tuple[int, int]:
    """The length on a line, `_NONE` or `_TO_COME`, and where the line ends."""
    end = unread.find(b"\r\n", start, start + MAX_LENGTH_BYTES)
    digits = unread[start + 1 : end] if end > 0 else b""
    if digits.isdigit() and (length := int(digits)) <= MAX_ANSWER_BYTES:
        return length, end + 2
    if digits == b"-1":
        return _NONE, end + 2
    if end < 0 and len(unread) - start < MAX_LENGTH_BYTES:
        return _TO_COME, end
    raise NotRedis("a length is none, or too long")
