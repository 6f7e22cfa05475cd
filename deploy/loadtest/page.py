"""`report.html` from `report.json`: every number on the page is in there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from deploy.loadtest import plots
from deploy.loadtest.load_verdict import KEPT_SHARE, last_kept, share_text, verdict
from model_export.report import html_page
from model_export.report.shown_text import shown_text
from model_export.report.tables import Column, escaped, table, typed

Part = Mapping[str, Any]

STEP_COLUMNS = (
    Column("load", "of the capacity"),
    Column("requests", "requests"),
    Column("asked_pairs_per_s", "asked for, pairs/s"),
    Column("good_pairs_per_s", "good, pairs/s"),
    Column("good", "good"),
    Column("refused", "refused"),
    Column("deadline", "deadline"),
    Column("late", "late"),
    Column("failed", "failed"),
    Column("cached", "from cache"),
    Column("p50_ms", "p50, ms"),
    Column("p95_ms", "p95, ms"),
    Column("p99_ms", "p99, ms"),
)
PLAIN = False


def report_html(document: Part) -> str:
    """The page; equal documents give equal pages."""
    model = document["facts"]["model"]
    title = f"{shown_text(model['name'])} {shown_text(model['version'])}: load test"
    return html_page.whole_page(title, "\n".join(_body(document, title)))


def step_rows(document: Part) -> list[dict[str, Any]]:
    """The cells of the table of loads."""
    kept = last_kept(document["steps"])
    return [
        {
            **step,
            "load": f"{step['load']:g}",
            **{fate: share_text(share) for fate, share in step["shares"].items()},
            "cached": share_text(step["cached_share"]),
            "is_kept": step is kept,
        }
        for step in document["steps"]
    ]


def _body(document: Part, title: str) -> Iterator[str]:
    sound, answer, grounds = verdict(document)
    steps, settings, timeline = document["steps"], document["settings"], document["timeline"]
    yield f"<h1>{escaped(title)}</h1>"
    yield html_page.verdict_box(answer, " ".join(grounds), good=sound)
    if steps:
        yield "<h2>At constant rates</h2>"
        yield html_page.figures(
            (plots.latency_by_load(steps, settings), _latency_note(steps)),
            (
                plots.goodput_by_load(steps, document["capacity"]["pairs_per_s"]),
                "A pair is good when its score came within the caller's patience. Refused ones "
                "cost an auction nothing but their score: it can go on at once.",
            ),
        )
    if timeline:
        yield f"<h2>In a {escaped(timeline['shape'])}</h2>"
        yield html_page.figures(
            (plots.goodput_by_second(timeline), "By the second in which a request was due."),
            (plots.latency_by_second(timeline, settings), "Of answers with scores."),
        )
    if steps:
        yield "<h2>Loads</h2>"
        yield table(STEP_COLUMNS, step_rows(document), _steps_note(document), kind="cards",
                    marked="is_kept")  # fmt: skip
    if document["failures"]:
        yield "<h2>What did not succeed</h2>"
        yield _failures(document["failures"])
    yield "<h2>Facts</h2>"
    yield _facts(document)


def _latency_note(steps: list[Part]) -> str:
    counts = [step["requests"] for step in steps]
    return (
        "From the instant when a request was due to its whole answer, of requests that got "
        f"scores. {min(counts):,} to {max(counts):,} requests a point: the fewer, the rougher is "
        "the 99th percentile."
    )


def _steps_note(document: Part) -> str:
    source = document["capacity"]["source"]
    return (
        "Constant mean arrival rates, Poisson arrivals, the lowest first. The capacity is "
        f"{document['capacity']['requests_per_s']:.1f} requests/s ({source}). In bold the highest "
        f"load up to which {share_text(KEPT_SHARE)} of the pairs were good."
    )


def _failures(counts: Mapping[str, int]) -> str:
    rows = [{"name": typed(name), "requests": n} for name, n in counts.items()]
    columns = (Column("name", "outcome", is_number=PLAIN), Column("requests", "requests"))
    return table(columns, rows, "Requests of all runs, by what became of them.")


def _facts(document: Part) -> str:
    facts = {**document["facts"], "setting": document["settings"]}
    flat = dict(_flat(facts))
    rows = [{"name": name, "value": typed(str(value))} for name, value in flat.items()]
    columns = (
        Column("name", "fact", is_number=PLAIN),
        Column("value", "value", is_number=PLAIN),
    )
    return table(columns, rows, "What was measured, on what and how.", kind="facts")


def _flat(part: Part) -> Iterator[tuple[str, Any]]:
    """Names in words: those of a part within a part stand after its own."""
    for key, value in part.items():
        name = key.replace("_", " ")
        if isinstance(value, Mapping):
            yield from ((f"{name}: {inner}", found) for inner, found in _flat(value))
        else:
            yield name, value
