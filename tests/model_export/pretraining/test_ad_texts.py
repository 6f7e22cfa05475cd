from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from model_export.errors import BadPairsFile
from model_export.pretraining.ad_texts import AdText, read_texts

if TYPE_CHECKING:
    from pathlib import Path


def test_an_ad_is_its_first_field_and_all_that_follows(tmp_path: Path) -> None:
    file = tmp_path / "ads.jsonl"
    file.write_text(
        '{"title": "red shoe", "description": "cheap", "label": 1}\n'
        '{"query": "bag", "title": "blue bag", "description": "best"}\n'
        '{"text": "lamp"}\n',
        encoding="utf-8",
    )
    assert read_texts([file]) == [
        AdText("red shoe", "cheap"),
        AdText("bag", "blue bag best"),
        AdText("lamp"),
    ]


def test_a_text_that_stands_in_two_files_is_learnt_once(tmp_path: Path) -> None:
    lines, table = tmp_path / "ads.txt", tmp_path / "ads.csv"
    lines.write_text("red shoe\n\nblue bag\n", encoding="utf-8")
    table.write_text("title\nred shoe\nlamp\n", encoding="utf-8")
    assert [text.first for text in read_texts([lines, table])] == ["red shoe", "blue bag", "lamp"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"title": "a"}\n{"label": 1}\n', "line 2: has none of query, title, text, description"),
        ('{"title": 7}\n', "line 1: 'title' must be a text, got 7"),
        ("", "holds no text"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused_with_its_line(
    tmp_path: Path, content: str, reason: str
) -> None:
    file = tmp_path / "ads.jsonl"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(BadPairsFile, match=reason):
        read_texts([file])
