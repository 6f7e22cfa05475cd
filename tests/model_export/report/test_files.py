from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from model_export.errors import ExportError
from model_export.report.document import report_json
from model_export.report.files import draw_again, write_report
from model_export.report.page import report_html
from tests.model_export.report.made_evidence import LATENCY, made_evidence

WRITE = (
    "import sys; from pathlib import Path; from model_export.report.files import write_report; "
    "from tests.model_export.report.made_evidence import made_evidence; "
    "write_report(Path(sys.argv[1]), made_evidence())"
)


def test_the_same_evidence_gives_the_same_bytes_in_another_process(tmp_path: Path) -> None:
    here = write_report(tmp_path, made_evidence())
    there = tmp_path / "there"
    there.mkdir()
    environment = {**os.environ, "PYTHONHASHSEED": "1", "SOURCE_DATE_EPOCH": "1"}
    subprocess.run([sys.executable, "-c", WRITE, there], check=True, env=environment)
    for file in here:
        assert file.read_bytes() == (there / file.name).read_bytes()


def test_the_page_can_be_drawn_again_from_the_figures_alone(tmp_path: Path) -> None:
    _, page = write_report(tmp_path, made_evidence(latency=LATENCY))
    before = page.read_bytes()
    page.unlink()
    assert draw_again(tmp_path) == page
    assert page.read_bytes() == before
    in_memory = report_html(report_json(made_evidence(latency=LATENCY)))
    assert before == in_memory.encode()


def test_the_figures_are_sorted_ascii_json(tmp_path: Path) -> None:
    texts = [("\ud800 \u2028", "跑步鞋")] * 60
    figures, _ = write_report(tmp_path, made_evidence(texts=texts))
    text = figures.read_bytes().decode("ascii")
    assert list(json.loads(text)) == sorted(json.loads(text))


@pytest.mark.parametrize("content", [None, "", "[]", "{", "[" * 100_000, '{"report_version": 1}'])
def test_what_is_not_a_report_is_refused_by_name(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "report.json").write_text(content, encoding="utf-8")
    with pytest.raises(ExportError, match="report"):
        draw_again(tmp_path)
    assert not (tmp_path / "report.html").exists()
