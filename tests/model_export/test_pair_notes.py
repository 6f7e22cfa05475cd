from __future__ import annotations

from pathlib import Path

from model_export.column_names import COLUMNS
from model_export.distillation.sources import read_sources
from model_export.pair_notes import contradictions, contradictions_between, ignored_columns
from model_export.pairs import LabelledPair, read_pairs
from service.domain import Ad


def pair(query: str, text: str, label: float) -> LabelledPair:
    return LabelledPair(query, Ad("1", text=text), label)


def test_columns_that_nothing_reads_are_named_with_what_may_have_been_meant() -> None:
    assert ignored_columns(COLUMNS) is None
    assert ignored_columns(["query", "descripton", "brand"]) == (
        "columns that nothing reads: 'brand', 'descripton' (did you mean 'description'?)"
    )
    assert ignored_columns(["Label"]) == (
        "columns that nothing reads: 'Label' (did you mean 'label'?)"
    )


def test_pairs_that_contradict_each_other_are_counted_and_the_first_are_shown() -> None:
    pairs = [pair("q", text, label) for label in (0.0, 1.0, 1.0) for text in "abcd"]
    pairs += [pair("q", "e", 1.0), pair("other", "e", 0.0), pair("q", "f", 0.0)]
    found = contradictions(pairs, range(2, 2 + len(pairs)))
    assert found is not None
    assert "relevant in one row and irrelevant in another: 4, as in" in found
    assert found.endswith("as in lines 2 and 6, 3 and 7, 4 and 8, ..")


def test_agreement_is_no_contradiction() -> None:
    pairs = [pair("q", "a", 1.0), pair("q", "a", 0.8), pair("q", "b", 0.0), pair("q", "b", 0.5)]
    assert contradictions(pairs, [1, 2, 3, 4]) is None


def test_files_that_contradict_each_other_are_named_with_how_many_pairs() -> None:
    files = {
        "a": [pair("q", "x", 1.0), pair("q", "y", 0.2), pair("q", "y", 0.0)],
        "b": [pair("q", "y", 0.3), pair("r", "x", 0.0)],
    }
    assert contradictions_between(files) is None
    files["c"] = [pair("q", "y", 0.9), pair("q", "x", 0.1), pair("r", "x", 0.0)]
    told = contradictions_between(files)
    assert told is not None
    assert told.endswith("relevant in one of a and c and irrelevant in the other: 2")


def test_each_is_told_once_a_file(tmp_path: Path) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("query,title,descripton,label\nq,t,d,1\nq,t,d,0\nq,u,d,0\n", encoding="utf-8")
    told: list[str] = []
    read_pairs(table, tell=told.append)
    note, warning = told
    assert note.startswith(f"note: {table}: columns that nothing reads: 'descripton'")
    assert warning.startswith(f"warning: {table}: pairs of the same query and ad")
    assert warning.endswith("as in lines 2 and 3")
    told.clear()
    read_sources([table], [table], [], tell=told.append)
    assert told == [note, note]
