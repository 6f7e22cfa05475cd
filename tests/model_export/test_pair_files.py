from __future__ import annotations

import json
from pathlib import Path

import pytest

from model_export.errors import BadPairsFile
from model_export.pair_files import read_rows
from model_export.pairs import read_pairs
from service.domain import Ad


def csv_file(folder: Path, content: str | bytes, name: str = "pairs.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_csv_row_says_the_same_as_a_json_line(tmp_path: Path) -> None:
    row = {"query": "red shoes", "title": "Red, big", "description": "\"Run\"",
           "label": 1, "grade": 3, "raters": [3, 2, 1], "source": "us", "doc_id": "B1"}  # fmt: skip
    lines = tmp_path / "pairs.jsonl"
    lines.write_text(json.dumps(row), encoding="utf-8")
    table = csv_file(
        tmp_path,
        "query,title,description,label,grade,raters,source,doc_id\n"
        'red shoes,"Red, big","""Run""",1,3.0,3 2 1,us,B1\n',
    )
    assert read_pairs(table) == read_pairs(lines)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_rows_are_numbered_by_the_line_on_which_they_start(tmp_path: Path, ending: str) -> None:
    lines = ["query,text,label", "", 'q,"two', 'lines",1', ",,", "q,one line,0"]
    table = csv_file(tmp_path, ending.join(lines))
    assert [pair.ad for pair in read_pairs(table)] == [
        Ad("3", text=f"two{ending}lines"),
        Ad("6", text="one line"),
    ]


def test_a_byte_order_mark_and_spaces_around_names_do_no_harm(tmp_path: Path) -> None:
    table = csv_file(tmp_path, b"\xef\xbb\xbfquery, text ,label\nq,t,0.5\n")
    assert [(pair.query, pair.label) for pair in read_pairs(table)] == [("q", 0.5)]


def test_empty_cells_are_fields_that_are_not_there(tmp_path: Path) -> None:
    table = csv_file(tmp_path, "query,text,label,grade,source\nq,t,1,,\n")
    (pair,) = read_pairs(table)
    assert (pair.grade, pair.source) == (None, "")


def test_the_format_can_be_said_where_the_name_does_not(tmp_path: Path) -> None:
    table = csv_file(tmp_path, "query,text,label\nq,t,1\n", "pairs.data")
    assert len(read_pairs(table, "csv")) == 1
    with pytest.raises(BadPairsFile, match="line 1: not JSON"):
        read_pairs(table)
    lines = csv_file(tmp_path, '{"query": "q", "text": "t", "label": 1}', "lines.csv")
    assert len(read_pairs(lines, "jsonl")) == 1


@pytest.mark.parametrize(
    ("content", "line", "reason"),
    [
        ('query,text,label\nq,t,1\nq,"t,1\nq,t,0\n', 3, "opened here and never closed"),
        ('query,text,label\nq,"t"x,1\n', 2, "closes inside a cell"),
        ("query,text,label\nq,t\n", 2, "has 2 cells, the header 3"),
        ("query,text,label\nq,t,1,more\n", 2, "has 4 cells, the header 3"),
        ("title,label\nt,1\n", 2, "'query' is missing"),
        ("q,t,1\n", 1, "must be a header with 'query', 'title' or 'text', got ['q', 't', '1']"),
        ("Query,Titel,Label\nq,t,1\n", 1, "mean 'query' by 'Query', 'title' by 'Titel', 'label'"),
        ("query,titel,label\nq,t,1\n", 2, "mean 'title' by 'titel'?"),
        ("query,query,label\nq,t,1\n", 1, "names the column 'query' twice"),
        ("query;text;label\nq;t;1\n", 1, "separated by commas"),
        ("query\ttext\tlabel\nq\tt\t1\n", 1, "separated by commas"),
        ("query,label\nq,1\n", 2, "neither 'title' nor 'text'"),
        ("query,text\nq,t\n", 2, "'label' is missing"),
        ("query,text,label\nq,t,yes\n", 2, "'label' must be a number, got 'yes'"),
        ("query,text,label\nq,t,nan\n", 2, "'label' must be a finite number"),
        ("query,text,label,raters\nq,t,1,2;3\n", 2, "'raters' must be a number, got '2;3'"),
        ("query,text,label\nq,t,1\nq,a\0b,1\n", 3, "NUL"),
        (f"query,text,label\nq,{'t' * 200_000},1\n", 2, "more than 131,072 characters"),
    ],
)
def test_a_broken_table_is_refused_with_its_line_and_the_reason(
    tmp_path: Path, content: str, line: int, reason: str
) -> None:
    table = csv_file(tmp_path, content)
    with pytest.raises(BadPairsFile) as caught:
        read_pairs(table)
    assert str(caught.value).startswith(f"{table}, line {line}: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize("content", ["", "\n\n", "query,text,label\n"])
def test_a_table_without_rows_is_refused(tmp_path: Path, content: str) -> None:
    with pytest.raises(BadPairsFile, match="holds no pairs"):
        read_pairs(csv_file(tmp_path, content))


def test_a_file_that_is_no_text_is_refused_before_any_row(tmp_path: Path) -> None:
    with pytest.raises(BadPairsFile, match="is UTF-16 text"):
        read_rows(csv_file(tmp_path, "query,text,label\n".encode("utf-16")))


def test_tabs_are_refused_by_the_name_of_the_file(tmp_path: Path) -> None:
    table = csv_file(tmp_path, "query,text,label\nq,t,1\n", "pairs.TSV")
    with pytest.raises(BadPairsFile, match=r"make it CSV with commas \(\.csv\)"):
        read_rows(table)
    assert len(read_pairs(table, "csv")) == 1, "who says the format knows better"


def test_a_key_given_twice_is_refused(tmp_path: Path) -> None:
    lines = csv_file(
        tmp_path,
        '{"query": "q", "text": "t", "label": 1}\n'
        '{"query": "q", "label": 0, "text": "t", "label": 1}\n',
        "pairs.jsonl",
    )
    with pytest.raises(BadPairsFile, match="line 2: the object names the key 'label' twice"):
        read_pairs(lines)
