from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
import numpy as np
import pytest

from model_export.report import figures
from model_export.report.document import report_json
from model_export.report.svg import svg_of
from tests.model_export.report.made_evidence import LATENCY, made_evidence

PARTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "agreement": lambda document: figures.agreement(document["scatter"]),
    "change": lambda document: figures.change(document["scatter"], 0.15),
    "spread": lambda document: figures.spread(document["spread"]),
    "lengths": lambda document: figures.lengths(document["lengths"]),
    "scores": lambda document: figures.score_histogram(document["score_histogram"]),
    "reliability": lambda document: figures.reliability(document["reliability"]),
    "latency": lambda document: figures.latency(document["latency"]),
    "throughput": lambda document: figures.throughput(document["latency"]),
}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return report_json(made_evidence(latency=LATENCY))


@pytest.mark.parametrize("name", PARTS)
def test_every_figure_is_well_formed_and_can_stand_in_a_page(
    name: str, document: dict[str, Any]
) -> None:
    svg = PARTS[name](document)
    root = ET.fromstring(svg)  # noqa: S314  # made here
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"]
    ids = {element.attrib["id"] for element in root.iter() if "id" in element.attrib}
    assert all(one.startswith(f"{name}-") for one in ids)
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    assert used <= ids
    for foreign in ("<style", "<!DOCTYPE", "<metadata", "font-family"):
        assert foreign not in svg


@pytest.mark.parametrize("name", PARTS)
def test_every_figure_has_a_title_and_named_axes_and_the_pages_colours(
    name: str, document: dict[str, Any]
) -> None:
    svg = PARTS[name](document)
    texts = [element.text for element in ET.fromstring(svg).iter() if element.text]  # noqa: S314
    letters = [text for text in texts if re.search("[A-Za-z]{4}", text)]
    assert len(letters) >= 3
    assert set(re.findall(r"#[0-9a-f]{6}\b(?=[\";])", svg)) <= {"#000000", "#ffffff"}
    assert "currentColor" in svg


@pytest.mark.parametrize("name", PARTS)
def test_the_same_figure_is_drawn_twice(name: str, document: dict[str, Any]) -> None:
    assert PARTS[name](document) == PARTS[name](document)


def test_the_users_own_settings_do_not_reach_the_report(document: dict[str, Any]) -> None:
    before = figures.agreement(document["scatter"])
    with mpl.rc_context({"font.size": 30, "axes.linewidth": 7, "svg.fonttype": "path"}):
        assert figures.agreement(document["scatter"]) == before
        assert mpl.rcParams["font.size"] == 30


def test_numbers_in_texts_keep_their_digits() -> None:
    svg = svg_of("one", "d", lambda axes: axes.set_title("0.0001 to 0.001"))
    assert "0.0001 to 0.001" in svg


def test_names_from_outside_are_only_text() -> None:
    svg = svg_of("one", '"><script>', lambda axes: axes.set_title("$x^{$ <script>"))
    assert "<script>" not in svg
    assert "$x^{$ &lt;script&gt;" in svg


def test_a_spread_of_zero_is_a_bar_with_its_count() -> None:
    svg = figures.spread(report_json(made_evidence(spread=np.zeros(60)))["spread"])
    assert ">60<" in svg
    assert svg.count(">0<") == 8  # seven empty classes and the origin
    assert "var(--first)" in svg


def test_scores_that_did_not_move_are_drawn_without_a_tolerance_too() -> None:
    scores = np.linspace(0, 1, 60)
    scatter = report_json(made_evidence(reference_scores=scores, served_scores=scores))["scatter"]
    assert "<svg" in figures.change(scatter, None)
