"""The evaluation for people: tables of plain text, drawn from the document alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from model_export.evaluation.figures import FIGURES
from model_export.report.number_text import MINUS, NONE
from model_export.report.shown_text import shown_text

LONGEST_NAME_CHARS = 60
SMALL_MARK = "*"


def text_of(document: Mapping[str, Any]) -> str:
    """All tables, with what a reader must know to read them."""
    counts, options = document["pairs"], document["options"]
    head = (
        f"{counts['n_pairs']} pairs ({counts['n_relevant']} relevant) of {counts['n_queries']} "
        f"queries, {counts['n_queries_with_both_classes']} of them with both kinds of ads"
    )
    parts = [head, *_notes(document)]
    for kind in ("ranking", "probability"):
        shown = [figure for figure in FIGURES if figure.kind == kind]
        parts.append(_figures(document, [figure.name for figure in shown]))
        parts.append("\n".join(f"{_title(f.name, options):8}  {f.meaning}" for f in shown))
    if len(document["models"]) > 1:
        parts.append(_differences(document))
    parts.append(_slices(document))
    return "\n\n".join(parts)


def _notes(document: Mapping[str, Any]) -> list[str]:
    counts, options = document["pairs"], document["options"]
    notes = []
    if options["n_resamples"] and counts["n_queries"] > 1:
        notes.append(
            f"in brackets: {options['confidence']:.0%} intervals from {options['n_resamples']} "
            f"resamples of the queries, seed {options['seed']}"
        )
    else:
        notes.append("no intervals: they need resamples, and more than one query")
    if not counts["n_queries_with_both_classes"]:
        notes.append("no query has both kinds of ads, so no ranking of one query can be judged")
    if counts["n_soft_labels"]:
        notes.append(
            f"{counts['n_soft_labels']} labels are between 0 and 1: ranking figures cut them at "
            "0.5, the others take them as they are"
        )
    return notes


def _title(name: str, options: Mapping[str, Any]) -> str:
    title = next(figure.title for figure in FIGURES if figure.name == name)
    return f"{title}@{options['places']}" if name == "ndcg" else title


def _figures(document: Mapping[str, Any], names: Sequence[str]) -> str:
    rows = [["model", *(_title(name, document["options"]) for name in names)]]
    rows += [
        [_name(model), *(_cell(model["figures"].get(name)) for name in names)]
        for model in document["models"]
        if any(name in model["figures"] for name in names)
    ]
    return table(rows)


def _differences(document: Mapping[str, Any]) -> str:
    first, *others = document["models"]
    lines = [f"difference from {_name(first)}, on the same resamples ({SMALL_MARK}: beyond chance)"]
    for kind in ("ranking", "probability"):
        names = [f.name for f in FIGURES if f.kind == kind and f.name in first["figures"]]
        rows = [["model", *(_title(name, document["options"]) for name in names)]]
        rows += [
            [_name(model), *(_difference(model["difference_from_first"].get(n)) for n in names)]
            for model in others
            if any(name in model["difference_from_first"] for name in names)
        ]
        if len(rows) > 1:
            lines.append(table(rows))
    return "\n".join(lines)


def _slices(document: Mapping[str, Any]) -> str:
    lines = [
        f"slices ({SMALL_MARK}: too few pairs to read much into; lengths before cutting, to the "
        "first model's tokenizer)"
    ]
    models = document["models"]
    names = [_name(model) for model in models]
    for name, index in zip(names, range(len(models)), strict=True):
        if models[index]["kind"] == "baseline":
            continue
        rows = [[name, "pairs", "relevant", "queries", "AUC", "ECE"]]
        for part in document["slices"]:
            own = part["figures"][index]
            mark = SMALL_MARK if part["is_small"] else ""
            rows.append(
                [
                    f"{part['group']}: {shown_text(part['name'], LONGEST_NAME_CHARS)}",
                    f"{part['n_pairs']}{mark}",
                    str(part["n_relevant"]),
                    str(part["n_queries"]),
                    _cell(own["auc"]),
                    NONE if part["is_small"] else _cell(own.get("calibration_error")),
                ]
            )
        lines.append(table(rows))
    return "\n".join(lines)


def _name(model: Mapping[str, Any]) -> str:
    return shown_text(model["name"], LONGEST_NAME_CHARS)


def _cell(estimate: Mapping[str, float | None] | None) -> str:
    if estimate is None or estimate["value"] is None:
        return NONE
    text = f"{estimate['value']:.3f}"
    if estimate["low"] is None:
        return text
    return f"{text} [{estimate['low']:.3f}, {estimate['high']:.3f}]"


def _difference(estimate: Mapping[str, float | None] | None) -> str:
    if estimate is None or estimate["value"] is None:
        return NONE
    low, high = estimate["low"], estimate["high"]
    text = f"{estimate['value']:+.3f}"
    if low is not None and high is not None:
        text += f" [{low:+.3f}, {high:+.3f}]{SMALL_MARK if low > 0 or high < 0 else ''}"
    return text.replace("-", MINUS)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Cells in columns of equal width, the first column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
