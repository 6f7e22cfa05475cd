"""The tables of the page, each from its part of `report.json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from model_export.report.number_text import limit, signed
from model_export.report.tables import Column, Markup, table, typed

Part = Mapping[str, Any]
Rows = Sequence[Part]

PASS = Markup('<span class="good">pass</span>')
FAIL = Markup('<span class="bad">FAIL</span>')

MAX_LIST_ITEMS = 8
FACTS_FIRST = ("model", "precision", "head", "inputs", "score_calibration")
FACTS_ELSEWHERE = frozenset({"parity", "quality", "score_histogram"})

# In the order in which figures are shown.
_NAMES = {
    "method": "map",
    "worst_logit": "largest change of a logit",
    "mean_score": "mean change of the score",
    "worst_score": "largest change of the score",
    "rank_agreement": "rank agreement (Spearman)",
    "batch_spread": "batch spread (logit)",
    "auc_loss": "loss of AUC",
    "ndcg_loss": "loss of NDCG@10",
    "auc": "AUC",
    "ndcg_at_10": "NDCG@10",
    "log_loss": "log loss (nats)",
    "brier": "Brier score",
    "ece": "ECE",
    "calibration_error": "calibration error (ECE)",
    "pairs": "pairs judged",
}


def parity(rows: Rows) -> str:
    """Every figure of every stage beside its tolerance, a table for each stage."""
    columns = (
        Column("figure", "figure", is_number=False),
        Column("value", "measured"),
        Column("tolerance", "tolerance"),
        Column("passed", "", is_number=False),
    )
    tables = []
    for stage in dict.fromkeys(row["stage"] for row in rows):
        shown = [
            {
                "figure": _name(row["figure"]),
                "value": row["value"],
                "tolerance": f"{row['rule']} {limit(row['tolerance'])}",
                "passed": PASS if row["passed"] else FAIL,
            }
            for row in rows
            if row["stage"] == stage
        ]
        tables.append(table(columns, shown, stage))
    return f'<div class="figures">{"".join(tables)}</div>'


def score_change(rows: Rows) -> str:
    """Quantiles of the absolute score change, and its mean with the sign."""
    figures = {
        "n_pairs": "pairs",
        "mean": "mean",
        "median": "median",
        "p90": "90 in 100, at most",
        "p99": "99 in 100, at most",
        "worst": "worst",
        "mean_signed": "mean with sign",
        "rank_agreement": "rank agreement (Spearman)",
    }
    shown = [
        {"figure": name} | {row["pairs"]: row[key] for row in rows} for key, name in figures.items()
    ]
    columns = [Column("figure", "change of the score", is_number=False)]
    columns += [Column(row["pairs"], row["pairs"]) for row in rows]
    return table(
        columns, shown, "Served score less torch score: its size, of all pairs and of each kind."
    )


def worst_pairs(rows: Rows) -> str:
    """The texts with their three scores."""
    shown = [
        {**row, "query": typed(row["query"]), "ad": typed(row["ad"])}
        | {key: f"{row[key]:.4f}" for key in ("reference", "fp32", "served")}
        | {"change": signed(row["change"], 4)}
        | ({"label": limit(row["label"])} if "label" in row else {})
        for row in rows
    ]
    columns = [Column("query", "query", is_number=False), Column("ad", "ad", is_number=False),
               Column("reference", "torch"), Column("fp32", "fp32"), Column("served", "served"),
               Column("change", "change")]  # fmt: skip
    if any("label" in row for row in rows):
        columns.append(Column("label", "label"))
    caption = "Uncalibrated scores. Invisible characters are spelled out, long texts are cut."
    return table(columns, shown, caption, kind="cards")


def quality(part: Part) -> str:
    """Torch against served, both calibrated."""
    before, after = part["torch"], part["served"]
    rows = [
        {"figure": _name(key), "torch": before.get(key), "served": value,
         "change": "" if key == "pairs" or value is None or before.get(key) is None
         else signed(value - before[key], 4)}
        for key, value in sorted(after.items(), key=lambda item: _place(item[0]))
    ]  # fmt: skip
    for row in rows:
        row.update({side: f"{row[side]:.4f}" for side in ("torch", "served")
                    if isinstance(row[side], float)})  # fmt: skip
    columns = (Column("figure", "figure", is_number=False), Column("torch", "torch"),
               Column("served", "served"), Column("change", "change"))  # fmt: skip
    return table(
        columns, rows, "On the labelled pairs, both with the score calibration of the bundle."
    )


def reliability_tables(part: Part) -> str:
    """The three figures before and after, and the bins behind the diagram."""
    sides = ("before", "after")
    rows = [
        {"figure": _name(key)} | {side: f"{part[side][key]:.4f}" for side in sides}
        for key in ("log_loss", "brier", "calibration_error")
    ]
    columns = (Column("figure", "figure", is_number=False), Column("before", "before"),
               Column("after", "after"))  # fmt: skip
    held_out = " (held out)" if part["after_is_held_out"] else " (pairs that it may be fitted on)"
    figures = table(columns, rows, f"Before and after score calibration{held_out}; less is better.")
    bin_columns = (Column("side", "score calibration", is_number=False), Column("n_pairs", "pairs"),
                   Column("mean_score", "mean score"), Column("share_relevant", "share relevant"),
                   Column("low", "low"), Column("high", "high"))  # fmt: skip
    bins = [{"side": side, **one} for side in sides for one in part[side]["bins"]]
    listed = table(bin_columns, bins, "The diagram's points, with their 95 % intervals.")
    return f"{figures}<details><summary>The diagram in numbers</summary>{listed}</details>"


def candidates(rows: Rows) -> str:
    """The maps that were tried; the chosen one in bold, and named so."""
    keys = sorted({key for row in rows for key in row} - {"chosen"}, key=_place)
    columns = [Column(key, _name(key), is_number=key != "method") for key in keys]
    columns.append(Column("mark", "", is_number=False))
    shown = [
        {key: f"{value:.4f}" if isinstance(value, float) else value for key, value in row.items()}
        | {"mark": "chosen" if row.get("chosen") else ""}
        for row in rows
    ]
    caption = "Score calibrations that were tried; figures cross-validated, less is better."
    return table(columns, shown, caption, marked="chosen")


def latency(part: Part) -> str:
    """The measurements, and what they were made on."""
    columns = (Column("batch_pairs", "batch (pairs)"),
               Column("model", "graph", is_number=False), Column("median_ms", "median (ms)"),
               Column("pairs_per_s", "pairs/s"), Column("runs", "runs"))  # fmt: skip
    machine = ", ".join(
        f"{key.replace('_', ' ')} {value}" for key, value in sorted(part["machine"].items())
    )
    caption = (
        f"One run at a time with one thread, graphs in turn; pairs of {part['pair_tokens']} "
        f"tokens, no padding. Measured on: {machine}. A comparison, not a load test."
    )
    return table(columns, part["rows"], caption)


def facts(part: Part) -> str:
    """The manifest, flattened; what the page shows elsewhere is left out."""
    order = dict.fromkeys((*FACTS_FIRST, *sorted(part)))
    rows = [
        {"name": name, "value": typed(value)}
        for key in order
        if key in part and key not in FACTS_ELSEWHERE
        for name, value in _flat(part[key], key)
    ]
    columns = (Column("name", "field", is_number=False), Column("value", "value", is_number=False))
    return table(columns, rows, "The bundle's manifest.", kind="facts")


def _flat(value: Any, name: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401  # JSON
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _flat(value[key], f"{name}.{key}")
    elif isinstance(value, list):
        items = ", ".join(str(item) for item in value[:MAX_LIST_ITEMS])
        more = f", … [{len(value):,} values]" if len(value) > MAX_LIST_ITEMS else ""
        yield name, items + more
    else:
        text = str(value)
        yield name, text if text == text.strip() and text else repr(value)  # a lone space is seen


def _name(key: str) -> str:
    return _NAMES.get(key, key.replace("_", " "))


def _place(key: str) -> tuple[int, str]:
    """Known figures in their order, unknown ones after them by name."""
    return (list(_NAMES).index(key) if key in _NAMES else len(_NAMES), key)
