"""Writing the report into a bundle, and drawing the page again from its figures."""

from __future__ import annotations

import json
from pathlib import Path

from model_export.errors import ExportError
from model_export.report.document import report_json
from model_export.report.evidence import Evidence
from model_export.report.page import report_html

REPORT_JSON = "report.json"
REPORT_HTML = "report.html"


def write_report(folder: Path, evidence: Evidence) -> tuple[Path, Path]:
    """Write `report.json` and `report.html`; but for the latency the bytes repeat.

    Returns:
        The paths of the figures and of the page.
    """
    text = json.dumps(
        report_json(evidence), indent=1, sort_keys=True, ensure_ascii=True, allow_nan=False
    )
    figures = folder / REPORT_JSON
    figures.write_text(text + "\n", encoding="ascii", newline="\n")
    # Drawn from what was written, so that `draw_again` gives the very same page.
    return figures, draw_again(folder)


def draw_again(folder: Path) -> Path:
    """Write `report.html` from the bundle's `report.json`.

    Returns:
        The page's path.

    Raises:
        ExportError: There is no report, or it cannot be read.
    """
    file = folder / REPORT_JSON
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ExportError(f"{file} cannot be read: {error}") from error
    if not isinstance(document, dict):
        raise ExportError(f"{file} is not a report")
    page = folder / REPORT_HTML
    page.write_text(report_html(document), encoding="utf-8", newline="\n")
    return page
