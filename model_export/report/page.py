"""`report.html` from `report.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from model_export.errors import ExportError
from model_export.report import captions, figures, html_page, sections
from model_export.report.document import REPORT_VERSION
from model_export.report.shown_text import shown_text
from model_export.report.tables import escaped
from model_export.report.verdict import verdict


def report_html(document: Mapping[str, Any]) -> str:
    """The page; equal documents give equal pages.

    Args:
        document: As of `report_json`, or read back from its file. Its texts may be hostile.

    Raises:
        ExportError: It is not a report, or one of another version.
    """
    if document.get("report_version") != REPORT_VERSION:
        raise ExportError(
            f"the report has version {document.get('report_version')}, this program draws "
            f"{REPORT_VERSION}; export the model again"
        )
    try:
        body = "\n".join(_body(document))
        model = document["facts"]["model"]
        title = f"{shown_text(model['name'])} {model['version']}: export report"
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ExportError(f"the report is incomplete or damaged: {error!r}") from error
    return html_page.whole_page(title, body)


def _body(document: Mapping[str, Any]) -> Iterator[str]:
    passed, answer, grounds = verdict(document)
    model = document["facts"]["model"]
    name = shown_text(model["name"])
    yield f"<h1>{escaped(name)} {escaped(model['version'])}: export report</h1>"
    yield html_page.verdict_box(answer, grounds, good=passed)
    yield "<h2>Parity</h2><p>Scores are compared before score calibration.</p>"
    yield sections.parity(document["parity"])
    yield "<h2>How far the scores moved</h2>"
    yield sections.score_change(document["score_change"])
    yield html_page.figures(
        (figures.agreement(document["scatter"]), captions.agreement(document["scatter"])),
        (
            figures.change(document["scatter"], captions.worst_score_tolerance(document)),
            captions.change(document),
        ),
    )
    yield "<h2>The pairs that moved most</h2>"
    yield sections.worst_pairs(document["worst_pairs"])
    yield "<h2>Batch spread, lengths</h2>"
    yield html_page.figures(
        (figures.spread(document["spread"]), captions.spread(document["spread"])),
        (figures.lengths(document["lengths"]), captions.lengths(document["lengths"])),
    )
    yield "<h2>Quality and score calibration</h2>"
    yield from _quality(document)
    if document["latency"]:
        yield "<h2>Latency</h2>"
        yield sections.latency(document["latency"])
        yield html_page.figures(
            (figures.latency(document["latency"]), ""),
            (figures.throughput(document["latency"]), ""),
        )
    yield "<h2>Facts</h2>"
    yield sections.facts(document["facts"])


def _quality(document: Mapping[str, Any]) -> Iterator[str]:
    if document["quality"]:
        yield sections.quality(document["quality"])
    reliability, histogram = document["reliability"], document["score_histogram"]
    drawn = [(figures.score_histogram(histogram), captions.histogram(histogram))]
    if reliability:
        note = captions.reliability(reliability, document["facts"])
        drawn.insert(0, (figures.reliability(reliability), note))
    else:
        yield '<p class="soft">No labelled pairs: no quality figures, no reliability diagram.</p>'
    yield html_page.figures(*drawn)
    if reliability:
        yield sections.reliability_tables(reliability)
    if document["calibration_candidates"]:
        yield sections.candidates(document["calibration_candidates"])
