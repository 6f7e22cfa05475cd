from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from service.bulk.errors import InputUnusable
from service.bulk.parquet_table import ParquetTable
from service.bulk.score_file import FileJob, score_file
from service.bulk.table import PartSize
from service.scoring.bundle import Bundle, open_bundle

pa = pytest.importorskip("pyarrow", reason="Parquet needs the extra 'bulk'")
pq = pytest.importorskip("pyarrow.parquet")

N_ROWS = 50


@pytest.fixture(scope="module")
def bundle(tiny_bundle_int8: Path) -> Bundle:
    return open_bundle(tiny_bundle_int8)


def written(path: Path, table: Any, row_group_size: int = 12) -> Path:  # noqa: ANN401  # pyarrow's
    pq.write_table(table, path, row_group_size=row_group_size)
    return path


def pairs() -> Any:  # noqa: ANN401  # a pyarrow.Table
    titles = [f"red shoe {'bag ' * (number % 7)}{number}" for number in range(N_ROWS)]
    titles[20] = None  # type: ignore[call-overload]  # a row that is no pair
    return pa.table(
        {
            "query": pa.array(["red", "blue"] * (N_ROWS // 2)).dictionary_encode(),
            "title": pa.array(titles, pa.large_string()),
            "when": pa.array(
                [datetime(2026, 11, 30, tzinfo=UTC)] * N_ROWS, pa.timestamp("ns", tz="UTC")
            ),
            "sold": pa.array([None, 1.5, 2.0, 3.0, 4.0] * 10),
            "vector": pa.array([[1, 2]] * N_ROWS, pa.list_(pa.int8())),
            "key": pa.array([b"\xff\x00"] * N_ROWS),
        }
    )


def score(folder: Path, path: Path, out: str, bundle: Bundle, rows: int = 7) -> Path:
    rejects = folder / f"{out}.rejects.jsonl"
    job = FileJob(path, folder / out, rejects, False, 10_000, PartSize(rows=rows))
    score_file(job, bundle, 2, io.StringIO())
    return job.out


@pytest.mark.parametrize("rows", [1, 5, 12, 100])
def test_parts_hold_the_rows_of_the_file_in_any_order_of_reading(tmp_path: Path, rows: int) -> None:
    path = written(tmp_path / "a.parquet", pairs())
    parts = ParquetTable(path).survey(PartSize(rows=rows), with_columns=True).parts
    assert sum(part.n_rows for part in parts) == N_ROWS
    one_reader = ParquetTable(path)
    in_order = [one_reader.read(part).table for part in parts]
    assert pa.concat_tables(in_order).equals(pairs())
    alone = {part.number: ParquetTable(path).read(part).table for part in reversed(parts)}
    assert all(alone[number].equals(table) for number, table in enumerate(in_order))
    rows_read = [row for part in parts for row in ParquetTable(path).read(part).rows]
    assert [row.number for row in rows_read] == list(range(1, N_ROWS + 1))


def test_columns_keep_their_types_and_values(bundle: Bundle, tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", pairs())
    scored = pq.read_table(score(tmp_path, path, "out.parquet", bundle))
    kept = pairs().take([number for number in range(N_ROWS) if number != 20])
    assert scored.select(kept.column_names).equals(kept)
    assert scored.schema.field("query").type == pa.dictionary(pa.int32(), pa.string())
    added = [pa.float64(), pa.string(), pa.bool_()]
    assert scored.schema.types[-3:] == added


def test_the_size_of_parts_changes_no_row(bundle: Bundle, tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", pairs())
    small = pq.read_table(score(tmp_path, path, "small.parquet", bundle, rows=3))
    assert small.equals(pq.read_table(score(tmp_path, path, "large.parquet", bundle, rows=1000)))


def test_other_formats_get_what_they_can_hold(bundle: Bundle, tmp_path: Path) -> None:
    odd = pa.array([float("nan"), None] * (N_ROWS // 2))  # which no table equals
    path = written(tmp_path / "a.parquet", pairs().append_column("odd", odd))
    lines = score(tmp_path, path, "out.jsonl", bundle).read_text(encoding="utf-8").splitlines()
    third = json.loads(lines[2])
    assert third["when"] == "2026-11-30 00:00:00+00:00"
    assert (third["sold"], third["odd"]) == (2.0, None)
    assert third["vector"] == [1, 2]
    assert third["key"] == "/wA="
    [reject] = (tmp_path / "out.jsonl.rejects.jsonl").read_text(encoding="utf-8").splitlines()
    told = json.loads(reject)
    assert (told["row"], told["reason"]) == (21, "an ad needs a title or a text that is not empty")
    assert "line" not in told


def test_rows_without_a_schema_become_columns_that_hold_them_all(
    bundle: Bundle, tmp_path: Path
) -> None:
    rows = [{"query": "red", "text": "shoe", "id": 1, "price": 1, "mixed": [1]},
            {"query": "red", "text": "bag", "id": 2, "price": 1.5, "mixed": "x", "more": True},
            {"query": "red", "id": 3}]  # fmt: skip
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    table = pq.read_table(score(tmp_path, path, "out.parquet", bundle))
    assert table.drop_columns(["score", "model_version"]).to_pylist() == [
        {"query": "red", "text": "shoe", "id": 1, "price": 1.0, "mixed": "[1]", "more": None,
         "truncated": False},
        {"query": "red", "text": "bag", "id": 2, "price": 1.5, "mixed": '"x"', "more": True,
         "truncated": False},
    ]  # fmt: skip
    assert table.schema.field("id").type == pa.int64()


def test_a_file_without_rows_keeps_its_columns(bundle: Bundle, tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", pairs().slice(0, 0))
    scored = pq.read_table(score(tmp_path, path, "out.parquet", bundle))
    assert scored.num_rows == 0
    assert scored.column_names == [*pairs().column_names, "score", "model_version", "truncated"]


def test_text_that_is_none_is_set_aside(bundle: Bundle, tmp_path: Path) -> None:
    buffers = pa.array([b"shoe", b"\xff"], pa.binary()).buffers()
    broken = pa.Array.from_buffers(pa.string(), 2, buffers)
    path = written(tmp_path / "a.parquet", pa.table({"query": ["red", "red"], "text": broken}))
    table = ParquetTable(path)
    [part] = table.survey(PartSize(), with_columns=True).parts
    assert [row.fields and row.fields["text"] for row in table.read(part).rows] == ["shoe", b"\xff"]
    scored = pq.read_table(score(tmp_path, path, "out.parquet", bundle))
    assert scored.column("text").to_pylist() == ["shoe"]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"query": [1], "text": ["t"]}, "the column 'query' must be text, is int64"),
        ({"query": ["q"], "text": [b"t"]}, "the column 'text' must be text, is binary"),
        ({"query": ["q"]}, "must have the columns 'query' and 'title' or 'text'"),
    ],
)
def test_a_table_without_the_columns_of_pairs_is_refused(
    tmp_path: Path, table: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputUnusable, match=reason):
        ParquetTable(written(tmp_path / "a.parquet", pa.table(table)))


def test_what_is_no_parquet_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(b"query,text\n")
    with pytest.raises(InputUnusable, match=r"a\.parquet: cannot be read as Parquet"):
        ParquetTable(path)
    with pytest.raises(InputUnusable, match=r"b\.parquet: cannot be read as Parquet"):
        ParquetTable(tmp_path / "b.parquet")
