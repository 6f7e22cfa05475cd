from __future__ import annotations

import json
import re

import pytest

from deploy.loadtest.page import report_html, step_rows
from tests.deploy.loadtest.made_records import figures, report
from tests.model_export.report.test_page import Reader


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    return reader


@pytest.fixture(scope="module")
def page() -> str:
    return report_html(report())


def test_the_page_asks_nobody_for_anything(page: str) -> None:
    reader = read(page)
    assert not reader.tags & {"script", "iframe", "object", "embed", "form", "base", "img"}
    links = [value for name, value in reader.attributes if name in ("href", "src", "xlink:href")]
    assert all(value.startswith(("#", "data:")) for value in links)
    assert not re.search(r"@import|url\((?!#)", page)
    assert page.count("<svg") == 4


def test_no_two_things_on_the_page_have_one_id(page: str) -> None:
    ids = [value for name, value in read(page).attributes if name == "id"]
    assert ids
    assert len(ids) == len(set(ids))


def test_the_page_says_what_the_figures_say(page: str) -> None:
    texts = " ".join(read(page).texts)
    for told in (
        "minilm abc: load test", "Keeps 640 pairs/s", "55 %", "429 queue_full", "a processor",
        "http://127.0.0.1:8000", "second by second", "deadline",
    ):  # fmt: skip
        assert told in texts
    assert "failed" not in texts.split("What becomes of them")[1].split("A pair is good")[0]


def test_the_highest_load_that_was_kept_is_marked() -> None:
    assert [row["is_kept"] for row in step_rows(report())] == [False, True, False]


def test_equal_reports_give_equal_pages(page: str) -> None:
    assert report_html(json.loads(json.dumps(report()))) == page


def test_a_report_without_a_timeline_or_a_single_answer_can_be_drawn() -> None:
    silent = figures(400.0, {"refused": 1.0}, p50_ms=None, p95_ms=None, p99_ms=None)
    steps = [{"load": 1.0, "requests_per_s": 20.0, **silent}]
    page = report_html(report(spike=False, steps=steps, failures={}))
    assert page.count("<svg") == 2
    timeline = report()["timeline"]
    rows = [{**row, "p50_ms": None, "p99_ms": None} for row in timeline["rows"]]
    assert "<svg" in report_html(report(timeline={**timeline, "rows": rows}))


def test_a_report_that_ends_before_the_first_load_can_be_drawn() -> None:
    page = report_html(report(spike=False, steps=[], stopped="gone", fault_pairs=20))
    assert "Stopped early: gone." in page
    assert "429 queue_full" in page
    assert "<svg" not in page


def test_names_from_outside_do_nothing() -> None:
    facts = {"model": {"name": "<script>alert(1)</script>", "version": "&"}, "service": "<b>"}
    page = report_html(report(spike=False, facts=facts, failures={"<i>500": 1}))
    assert not read(page).tags & {"script", "b", "i"}
    assert "&lt;script&gt;" in page
