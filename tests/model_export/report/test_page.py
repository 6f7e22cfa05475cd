from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from model_export.errors import ExportError
from model_export.report.document import report_json
from model_export.report.evidence import Evidence
from model_export.report.page import report_html
from tests.model_export.report.made_evidence import FACTS, LATENCY, made_evidence

VOID = {"meta", "link", "br"}
HOSTILE = (
    ("<script>alert(1)</script>", "\"' onmouseover=alert(1) <img src=x>"),
    ("\u202egnp.exe", "</td></table><style>*{display:none}</style>"),
    ("\ud800 half", "word " * 2000),
    ("a\x00b\x1b[31m", "مرحبا &amp; <b>"),
)


class Reader(HTMLParser):
    """Tags, attributes and texts of a page; refuses tags that do not close in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def read(evidence: Evidence) -> Reader:
    reader = Reader()
    reader.feed(report_html(report_json(evidence)))
    reader.close()
    assert reader.open == []
    return reader


def hostile_evidence() -> Evidence:
    texts = list(HOSTILE) * 2  # so few that all are among the worst
    facts = FACTS | {"model": {"name": "<script>name", "version": "&v", "source": '"><script>'}}
    return made_evidence(4, 4, texts=texts, facts=facts, latency=LATENCY)


def test_the_page_asks_nobody_for_anything() -> None:
    reader = read(made_evidence(latency=LATENCY))
    assert not reader.tags & {"script", "iframe", "object", "embed", "form", "base", "img"}
    links = [value for name, value in reader.attributes if name in ("href", "src", "xlink:href")]
    assert links
    assert all(value.startswith(("#", "data:")) for value in links)
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    page = report_html(report_json(made_evidence(latency=LATENCY)))
    assert not re.search(r"@import|url\((?!#)", page)
    policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
    assert ("content", policy) in reader.attributes


def test_hostile_texts_are_shown_and_do_nothing() -> None:
    reader = read(hostile_evidence())
    assert not reader.tags & {"script", "img", "b"}
    assert reader.tags >= {"table", "svg", "bdi"}
    shown = "".join(reader.texts)
    assert "<script>alert(1)</script>" in shown
    assert "[U+202E]gnp.exe" in shown
    assert "[U+D800] half" in shown
    assert "… [10,000 characters]" in shown
    assert "<script>name &v: export report" in shown


def test_a_report_that_somebody_wrote_by_hand_is_escaped_too() -> None:
    document = report_json(made_evidence(latency=LATENCY))
    document["latency"]["rows"][0]["model"] = "<script>"
    text = json.dumps(document)
    for word in ("query 1", "torch against int8", "identity", "made pairs", "exactly 0"):
        text = text.replace(f'"{word}', f'"<script>{word}')
    page = report_html(json.loads(text))
    assert page.count("&lt;script&gt;") >= 6
    assert "<script" not in page


def test_the_figures_and_tables_are_there() -> None:
    page = report_html(report_json(made_evidence(latency=LATENCY)))
    assert page.count("<svg ") == 8
    for heading in ("Parity", "The pairs that moved most", "Latency", "Facts", "identity"):
        assert heading in page
    assert page.index("Yes: served in int8") < page.index("<h2>")


def test_a_fact_that_is_only_a_space_can_be_seen() -> None:
    facts = FACTS | {"inputs": {"max_length_tokens": 64, "ad_text": {"separator": " "}}}
    page = report_html(report_json(made_evidence(facts=facts)))
    assert "&#x27; &#x27;" in page


def test_without_labels_and_latency_the_page_says_so_or_leaves_it_out() -> None:
    page = report_html(report_json(made_evidence(20, 0)))
    assert page.count("<svg ") == 5
    assert "No labelled pairs" in page
    assert "<h2>Latency</h2>" not in page


@pytest.mark.parametrize(
    "changes",
    [
        {"n_made": 1, "n_labelled": 2, "labels": np.array([1.0, 0.0])},
        {"n_made": 0, "n_labelled": 2, "labels": np.array([1.0, 1.0])},
        {"n_made": 1, "n_labelled": 0},
        {name: np.full(60, 0.5) for name in ("reference_scores", "served_scores",
                                             "calibrated_scores")},
        {name: np.zeros(60) for name in ("reference_scores", "served_scores",
                                         "calibrated_scores")},
        {"spread": np.full(3, 0.9), "truncated": np.ones(60, dtype=bool)},
        {"quality": {}, "calibration_rows": ()},
    ],
)  # fmt: skip
def test_odd_exports_have_a_page_too(changes: dict[str, Any]) -> None:
    reader = read(made_evidence(**changes))
    assert "nan" not in "".join(reader.texts).lower().split()


def test_a_large_export_has_a_page_of_bounded_size() -> None:
    page = report_html(report_json(made_evidence(240, 8_000, latency=LATENCY)))
    assert len(page.encode()) < 600_000
    assert "2,000 of 8,240 pairs" in page


def test_a_report_of_another_version_or_with_holes_is_refused() -> None:
    document = report_json(made_evidence())
    with pytest.raises(ExportError, match="version 99"):
        report_html(document | {"report_version": 99})
    with pytest.raises(ExportError, match="incomplete or damaged"):
        report_html({key: value for key, value in document.items() if key != "spread"})
    with pytest.raises(ExportError, match="incomplete or damaged"):
        report_html(document | {"worst_pairs": [{"query": 1}]})
