from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.bulk.errors import InputUnusable
from service.bulk.part_run import open_table
from service.bulk.table import InputRow, PartSize

LIMIT_BYTES = 2_000


def rows_of(path: Path, size: PartSize | None = None) -> list[InputRow]:
    """All rows, each part read by a reader of its own, as another machine would."""
    survey = open_table(path, LIMIT_BYTES).survey(size or PartSize(), with_columns=False)
    rows: list[InputRow] = []
    for part in survey.parts:
        block = open_table(path, LIMIT_BYTES).read(part)
        assert len(block.rows) == part.n_rows
        rows += block.rows
    assert survey.n_rows == len(rows)
    return rows


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def faults(path: Path) -> dict[int, str]:
    return {row.number: row.fault for row in rows_of(path) if row.fields is None}


def test_rows_are_counted_and_lines_are_too(tmp_path: Path) -> None:
    table = written(tmp_path, "a.csv", 'query,text\n\nq,"two\nlines"\n,,\n,\nq,one\n')
    rows = rows_of(table)
    assert [(row.number, row.line) for row in rows] == [(1, 3), (2, 7)]
    assert rows[0].fields == {"query": "q", "text": "two\nlines"}


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path: Path) -> None:
    table = written(tmp_path, "a.csv", b"\xef\xbb\xbfquery, text \r\nq,t\r\n")
    assert [row.fields for row in rows_of(table)] == [{"query": "q", "text": "t"}]
    lines = written(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"query": "q"}\r\n')
    assert [row.fields for row in rows_of(lines)] == [{"query": "q"}]


def test_cells_are_kept_as_they_are(tmp_path: Path) -> None:
    table = written(tmp_path, "a.csv", 'query,text,id\n" q ",t,007\n')
    assert rows_of(table)[0].fields == {"query": " q ", "text": "t", "id": "007"}


def test_a_wrong_row_of_csv_costs_no_other_row(tmp_path: Path) -> None:
    content = (
        b'query,text\nq,1\n"never closed,2\nq,3\n\xff,4\n'
        b'"a"b,5\nq,\0\nq,"%s"\nq,8\nq,9,\n' % (b"x" * LIMIT_BYTES)
    )
    table = written(tmp_path, "a.csv", content)
    found = faults(table)
    assert list(found) == [2, 4, 5, 6, 7, 9]
    assert found[2].startswith('a quote (") is opened here and not closed before line 5')
    assert found[4] == "is not UTF-8 text: invalid start byte"
    assert found[5].startswith('a quote (") closes inside a cell')
    assert "NUL" in found[6]
    assert found[7] == "the row is over the limit of 2000 bytes"
    assert found[9] == "has 3 cells, the header 2"
    assert [row.fields["text"] for row in rows_of(table) if row.fields] == ["1", "3", "8"]


def test_a_quote_that_is_never_closed_takes_only_its_own_row(tmp_path: Path) -> None:
    far = "".join(f"q,{number}\n" for number in range(1000))  # more than the limit of a row
    table = written(tmp_path, "a.csv", f'query,text\n"q,0\n{far}')
    assert list(faults(table)) == [1]
    assert faults(table)[1].startswith('a quote (") is opened here and not closed before line')
    assert faults(table)[1].endswith("the row is over the limit of 2000 bytes")
    near = written(tmp_path, "b.csv", 'query,text\n"q,0\nq,1\n')
    assert faults(near) == {1: 'a quote (") is opened here and never closed'}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON, of which one object a line is expected"),
        ("[1]", "expected a JSON object, got list"),
        ('{"query": NaN}', "NaN is no JSON number"),
        ('{"price": 1e999}', "1e999 is no finite number"),
        ('{"query": "a", "query": "b"}', "query: is given twice in one object"),
        ('{"title": "\\ud800"}', "half of a surrogate pair"),
        ('{"a": ' + "[" * 100 + "]" * 100 + "}", "nested deeper than 64"),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", "nested deeper than 64"),
        ('{"a": ' + "1" * 5000 + "}", "over the limit of 2000 bytes"),
    ],
)
def test_a_wrong_line_of_json_says_why_and_costs_no_other(
    tmp_path: Path, line: str, reason: str
) -> None:
    lines = written(tmp_path, "a.jsonl", f'{line}\n{{"query": "q"}}')
    assert list(faults(lines)) == [1]
    assert reason in faults(lines)[1]
    assert rows_of(lines)[0].raw == line[:1000]


def test_bytes_that_are_no_text_are_a_fault_of_their_line(tmp_path: Path) -> None:
    lines = written(tmp_path, "a.jsonl", b'{"query": "\xff"}\n{"query": "q"}\n')
    assert faults(lines) == {1: "is not UTF-8 text: invalid start byte"}


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty"),
        ("query;text\n", "no commas"),
        ("query,description\n", "must have the columns 'query' and 'title' or 'text'"),
        ("query,text,text\n", "the column 'text' twice"),
        ('"query,text\n', "the header cannot be read: a quote"),
    ],
)
def test_a_csv_file_without_the_columns_of_pairs_is_refused(
    tmp_path: Path, content: str, reason: str
) -> None:
    with pytest.raises(InputUnusable, match=reason):
        rows_of(written(tmp_path, "a.csv", content))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputUnusable, match=r"a\.jsonl: cannot be read: No such file"):
        rows_of(tmp_path / "a.jsonl")


cells = st.text(st.sampled_from('ab",\n\r\0 é'), max_size=6)
csv_like = st.lists(cells, max_size=30).map(",".join)
json_like = st.lists(
    st.sampled_from(['{"query": "é"}', "{}", "", "  ", "[", "\\u", '{"a": "\u2028"}']), max_size=30
).map("\n".join)


@given(csv_like, st.integers(1, 4), st.integers(1, 40))
def test_parts_of_csv_hold_the_same_rows_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, rows: int, text_bytes: int
) -> None:
    table = written(tmp_path_factory.mktemp("csv"), "a.csv", f"query,text\n{text}")
    assert rows_of(table, PartSize(rows, text_bytes)) == rows_of(table)


@given(json_like, st.integers(1, 4), st.integers(1, 40))
def test_parts_of_json_lines_hold_the_same_rows_as_the_whole(
    tmp_path_factory: pytest.TempPathFactory, text: str, rows: int, text_bytes: int
) -> None:
    lines = written(tmp_path_factory.mktemp("jsonl"), "a.jsonl", text)
    assert rows_of(lines, PartSize(rows, text_bytes)) == rows_of(lines)


def test_parts_end_by_rows_or_by_bytes(tmp_path: Path) -> None:
    line = json.dumps({"query": "q" * 100}) + "\n"
    lines = written(tmp_path, "a.jsonl", line * 10)
    table = open_table(lines, LIMIT_BYTES)
    by_rows = table.survey(PartSize(rows=4), with_columns=False)
    assert [(part.first_row, part.n_rows) for part in by_rows.parts] == [(1, 4), (5, 4), (9, 2)]
    by_bytes = table.survey(PartSize(text_bytes=3 * len(line)), with_columns=False)
    assert [part.n_rows for part in by_bytes.parts] == [3, 3, 3, 1]


def test_kinds_of_columns_hold_all_their_values(tmp_path: Path) -> None:
    rows: list[dict[str, object]] = [
        {"query": 1, "id": 7, "price": 1, "ok": True, "tags": [1], "mixed": 1, "none": None},
        {"query": "q", "id": None, "price": 1.5, "ok": False, "mixed": "x", "huge": 2**70},
    ]
    lines = written(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows)))
    survey = open_table(lines, LIMIT_BYTES).survey(PartSize(), with_columns=True)
    assert survey.columns == {
        "query": "string", "id": "int64", "price": "double", "ok": "bool", "tags": "json",
        "mixed": "json", "none": "string", "huge": "json",
    }  # fmt: skip
