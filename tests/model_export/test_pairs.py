from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from model_export.errors import BadPairsFile
from model_export.judgements import Grade
from model_export.pairs import LabelledPair, read_pairs
from model_export.recipe import FinetuneRecipe, human_target
from service.domain import Ad

if TYPE_CHECKING:
    from pathlib import Path

GOOD_ROW = {"query": "red shoes", "title": "Red running shoes", "label": 1}


def _write(folder: Path, *rows: object) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_every_field_of_a_row_is_read(tmp_path: Path) -> None:
    row = {
        **GOOD_ROW,
        "description": " light ",
        "grade": 3,
        "raters": [3, 2, 1],
        "source": "chorus",
        "doc_id": "B01",
        "brand": "ignored",
    }
    assert read_pairs(_write(tmp_path, row)) == [
        LabelledPair(
            query="red shoes",
            ad=Ad(id="B01", title="Red running shoes", description="light"),
            label=1.0,
            grade=Grade(3, 3),
            rater_votes=(1.0, 2 / 3, 1 / 3),
            source="chorus",
        )
    ]


def test_a_ready_made_text_may_stand_in_for_the_title(tmp_path: Path) -> None:
    row = {"query": "red shoes", "text": "Red shoes, cheap", "label": 0.25, "raters": None}
    (pair,) = read_pairs(_write(tmp_path, row))
    assert pair.ad == Ad(id="1", text="Red shoes, cheap")
    assert pair.label == 0.25


def test_an_ad_without_id_is_named_by_its_line_and_blank_lines_count(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(GOOD_ROW) + "\n\n" + json.dumps(GOOD_ROW), encoding="utf-8")
    assert [pair.ad.id for pair in read_pairs(path)] == ["1", "3"]


def test_a_line_separator_inside_a_title_does_not_split_the_row(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    row = {**GOOD_ROW, "title": "Red\u2028shoes"}
    path.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    assert len(read_pairs(path)) == 1


def test_the_gain_is_that_of_the_grade_where_there_is_one_and_of_the_label_elsewhere() -> None:
    ad = Ad(id="A", title="Red shoes")
    assert LabelledPair("q", ad, label=1.0, grade=Grade(1, 3)).gain == pytest.approx(1 / 7)
    assert LabelledPair("q", ad, label=1.0).gain == 1.0
    assert LabelledPair("q", ad, label=0.5).gain == pytest.approx(2**0.5 - 1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ([1, 2], "expected a JSON object, got list"),
        ({**GOOD_ROW, "query": " "}, "'query' is missing or empty"),
        ({**GOOD_ROW, "query": 7}, "'query' must be a string, got int"),
        ({"query": "red shoes", "label": 1}, "neither 'title' nor 'text'"),
        ({"query": "red shoes", "title": "Red shoes"}, "'label' is missing"),
        ({"query": "red shoes", "title": "Red shoes", "Label": 1}, "mean 'label' by 'Label'?"),
        ({"query": "red shoes", "titel": "Red", "label": 1}, "mean 'title' by 'titel'?"),
        ({"Query": "red shoes", "title": "Red", "label": 1}, "mean 'query' by 'Query'?"),
        ({**GOOD_ROW, "label": "yes"}, "'label' must be a number, got str"),
        ({**GOOD_ROW, "label": 3}, "'label' must be in 0-1, got 3"),
        ({**GOOD_ROW, "label": float("nan")}, "'label' must be a finite number, got nan"),
        ({**GOOD_ROW, "raters": 3}, "'raters' must be a list"),
        ({**GOOD_ROW, "grade": "good"}, "'grade' must be a number"),
    ],
)
def test_a_bad_row_is_refused_with_path_line_and_reason(
    tmp_path: Path, row: object, reason: str
) -> None:
    path = _write(tmp_path, GOOD_ROW, row)
    with pytest.raises(BadPairsFile) as caught:
        read_pairs(path)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert reason in str(caught.value)


def test_a_line_that_is_no_json_is_refused_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text(json.dumps(GOOD_ROW) + "\n{query: red}\n", encoding="utf-8")
    with pytest.raises(BadPairsFile, match="line 2: "):
        read_pairs(path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xff\xfe"])
def test_a_file_without_readable_pairs_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(content)
    with pytest.raises(BadPairsFile, match=r"pairs\.jsonl"):
        read_pairs(path)


def test_a_missing_file_is_refused_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(BadPairsFile, match=r"absent\.jsonl"):
        read_pairs(tmp_path / "absent.jsonl")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ('"label": 1' + "0" * 400, "a number has 401 digits, and at most 300 can be read"),
        ('"label": 1e999', "'label' must be a finite number, got inf"),
        (f'"label": {"1" * 5000}', "a number has 5,000 digits"),
        ('"label": 1, "grade": NaN', "'grade' must be a finite number"),
        ('"label": 1, "grade": 2000', "'grade' must be in 0-3, .* got 2000"),
        (f'"label": 1, "other": {"[" * 100_000}', "nested in each other too deeply"),
        (r'"label": 1, "title": "red\u0000shoe"', "'title' holds a NUL character"),
        (r'"label": 1, "title": "half \ud800"', "'title' is not Unicode text"),
    ],
)
def test_a_value_that_breaks_the_reader_is_refused_with_its_line(
    tmp_path: Path, fields: str, reason: str
) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text('{"query": "q", "text": "t", ' + fields + "}", encoding="utf-8")
    with pytest.raises(BadPairsFile, match=f"line 1: .*{reason}"):
        read_pairs(file)


def test_a_backslash_before_what_looks_like_a_nul_is_text(tmp_path: Path) -> None:
    (pair,) = read_pairs(_write(tmp_path, {**GOOD_ROW, "title": r"red\u0000"}))
    assert pair.ad.title == r"red\u0000"


def test_a_mark_at_the_start_of_the_file_does_no_harm(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_bytes(b'\xef\xbb\xbf{"query": "q", "text": "t", "label": 1}\r\n')
    assert [pair.query for pair in read_pairs(file)] == ["q"]


def test_a_table_is_told_what_is_expected(tmp_path: Path) -> None:
    file = tmp_path / "pairs.jsonl"
    file.write_text("query,title,label\n", encoding="utf-8")
    with pytest.raises(BadPairsFile, match="one object a line is expected"):
        read_pairs(file)


@pytest.mark.parametrize(
    ("fields", "relevance"),
    [
        ({"label": 0.25, "score": 0.5, "grade": 3, "max_grade": 4}, 0.25),
        ({"score": 0.5, "grade": 3, "max_grade": 4}, 0.5),
        ({"label": None, "grade": 3, "max_grade": 4}, 0.75),
    ],
)
def test_the_label_goes_before_the_score_and_the_score_before_the_grade(
    tmp_path: Path, fields: dict[str, object], relevance: float
) -> None:
    (pair,) = read_pairs(_write(tmp_path, {"query": "q", "text": "t", **fields}))
    assert pair.label == relevance
    assert pair.judgement == Grade(3, 4)


@pytest.mark.parametrize(
    ("fields", "target"),
    [
        ({"label": 1, "raters": [1, 1, 1]}, 1.0),
        ({"label": 0, "raters": [0, 1, 0, 0]}, 0.125),
        # As the pairs of the default model have them: a grade and no maximum is of 0-3.
        ({"label": 1, "grade": 2, "raters": [3, 2, 1]}, 0.5 + 0.5 * 2 / 3),
        ({"label": 0, "grade": 0, "raters": [0, 1, 1]}, 0.0),
        ({"label": 1, "max_grade": 3, "raters": [1, 2, 2, 3]}, 0.5 + 0.5 * 3 / 4),
        ({"grade": 4, "max_grade": 4, "raters": [1, 2, 3, 4]}, 0.5 + 0.5 * 3 / 4),
        ({"grade": 5, "max_grade": 10, "raters": [4, 5]}, 0.5),
    ],
)
def test_raters_are_judged_on_the_scale_of_their_row(
    tmp_path: Path, fields: dict[str, object], target: float
) -> None:
    (pair,) = read_pairs(_write(tmp_path, {"query": "q", "text": "t", **fields}))
    assert human_target(pair, FinetuneRecipe().rater_share) == pytest.approx(target)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"raters": [1, 3]}, "must be in 0-1, as votes; for grades say 'max_grade'.*, got 3"),
        ({"raters": [-1]}, "must be in 0-1, .*, got -1"),
        ({"grade": 3, "raters": [3, 4]}, "must be in 0-3, the usual scale .*, got 4"),
        ({"max_grade": 5, "raters": [6]}, "must be in 0-5, 'max_grade' being the best, got 6"),
        ({"max_grade": 0, "raters": [0]}, "'max_grade' must be above 0, got 0"),
        ({"grade": 4}, "'grade' must be in 0-3, the usual scale .*, got 4"),
    ],
)
def test_a_rater_beyond_the_scale_is_refused_with_the_line(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    file = _write(tmp_path, GOOD_ROW, {**GOOD_ROW, **fields})
    with pytest.raises(BadPairsFile, match=f"line 2: .*{reason}"):
        read_pairs(file)


def test_the_best_grade_may_be_said_for_the_whole_file(tmp_path: Path) -> None:
    rows = ({"grade": 1}, {"grade": 1, "max_grade": 2})
    file = _write(tmp_path, *({"query": "q", "text": "t", **row} for row in rows))
    assert [pair.label for pair in read_pairs(file, max_grade=4)] == [0.25, 0.5]
    with pytest.raises(BadPairsFile, match="line 1: 'grade' without 'label' or 'score' needs"):
        read_pairs(file)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"score": 1.5}, "'score' must be in 0-1, got 1.5"),
        ({"grade": 4, "max_grade": 3}, "'grade' must be in 0-3, 'max_grade' being the best, got 4"),
        (
            {"grade": -1, "max_grade": 3},
            "'grade' must be in 0-3, 'max_grade' being the best, got -1",
        ),
        ({"grade": 0, "max_grade": 0}, "'max_grade' must be above 0, got 0"),
        ({"grade": 0, "max_grade": "three"}, "'max_grade' must be a number"),
    ],
)
def test_relevance_that_is_out_of_range_is_refused(
    tmp_path: Path, fields: dict[str, object], reason: str
) -> None:
    with pytest.raises(BadPairsFile, match=reason):
        read_pairs(_write(tmp_path, {"query": "q", "text": "t", **fields}))
