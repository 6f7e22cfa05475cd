"""Files of UTF-8 text, read whole; all else is refused with what it is, or where it is no text."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from model_export.errors import BadPairsFile

if TYPE_CHECKING:
    from pathlib import Path

_OTHER_CONTENT = (
    (codecs.BOM_UTF16_LE, "is UTF-16 text; save it as UTF-8"),
    (codecs.BOM_UTF16_BE, "is UTF-16 text; save it as UTF-8"),
    (b"\x1f\x8b", "is compressed with gzip; unpack it with gunzip"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd; unpack it with unzstd"),
    (b"\xfd7zXZ\0", "is compressed with xz; unpack it with unxz"),
    (b"PK\x03\x04", "is a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV"),
    (b"PAR1\x15", "is Parquet; write it as CSV or JSON Lines"),
)
"""How files begin that are no UTF-8 text, and what to do. Sources: RFC 1952, RFC 8878, the .xz, ZIP
and Parquet file formats."""


def read_text(path: Path) -> str:
    """All of a file of UTF-8 text, with or without a byte order mark.

    Raises:
        BadPairsFile: It cannot be read, is not UTF-8 or has NUL characters; the message has the
            path, and the line number of the first byte that is no text.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise BadPairsFile(f"{path}: cannot be read: {error.strerror}") from error
    for start, what in _OTHER_CONTENT:
        if content.startswith(start):
            raise BadPairsFile(f"{path}: by its first bytes it {what}")
    try:
        text = content.decode("utf-8-sig")  # some tools write a mark at the start
    except UnicodeDecodeError as error:
        # Its object, not the content: a mark at the start is no part of it.
        line = error.object.count(b"\n", 0, error.start) + 1
        byte = error.object[error.start]
        raise BadPairsFile(
            f"{path}, line {line}: byte 0x{byte:02x} is not UTF-8 text ({error.reason}); save the "
            "file as UTF-8"
        ) from error
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise BadPairsFile(f"{path}, line {line}: holds a NUL character, which no text has")
    return text
