from __future__ import annotations

import gzip
import io
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from model_export.errors import BadPairsFile
from model_export.text_files import read_text


def written(folder: Path, content: bytes) -> Path:
    path = folder / "pairs.csv"
    path.write_bytes(content)
    return path


def zipped(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("pairs.csv", content)
    return buffer.getvalue()


def as_parquet(content: bytes) -> bytes:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    buffer = io.BytesIO()
    parquet.write_table(arrow.table({"query": [content.decode()]}), buffer)
    return buffer.getvalue()


def test_a_mark_at_the_start_is_no_part_of_the_text(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, b"\xef\xbb\xbfquery\r\ncaf\xc3\xa9")) == "query\r\ncafé"


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda text: text.decode().encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
        (gzip.compress, "is compressed with gzip; unpack it with gunzip"),
        (lzma.compress, "is compressed with xz; unpack it with unxz"),
        (lambda text: b"\x28\xb5\x2f\xfd\x04" + text, "is compressed with zstd; unpack it with"),
        (zipped, "is a ZIP archive or a spreadsheet; unpack it, or save the sheet as CSV"),
        (as_parquet, "is Parquet; write it as CSV or JSON Lines"),
    ],
)
def test_a_file_of_another_kind_is_refused_by_what_it_is_and_with_what_to_do(
    tmp_path: Path, make: Callable[[bytes], bytes], what: str
) -> None:
    with pytest.raises(BadPairsFile, match=rf"pairs\.csv: by its first bytes it {what}"):
        read_text(written(tmp_path, make(b"query,text,label\nq,t,1\n")))


def test_a_text_that_begins_with_a_name_like_a_magic_number_is_text(tmp_path: Path) -> None:
    assert read_text(written(tmp_path, b"PAR16 lamp\nPK light\n")) == "PAR16 lamp\nPK light\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_the_first_byte_that_is_no_text_is_named_with_its_line(tmp_path: Path, mark: bytes) -> None:
    latin = mark + "query,text,label\nq,t,1\nq,café,1\n".encode("latin-1")
    with pytest.raises(BadPairsFile, match=r"pairs\.csv, line 3: byte 0xe9 is not UTF-8"):
        read_text(written(tmp_path, latin))
    with pytest.raises(BadPairsFile, match=r"pairs\.csv, line 2: holds a NUL character"):
        read_text(written(tmp_path, mark + b"query\nq\0\n"))


def test_a_file_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadPairsFile, match=r"absent\.csv: cannot be read: No such file"):
        read_text(tmp_path / "absent.csv")
