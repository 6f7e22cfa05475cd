from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from model_export.distillation.recipe import DistilRecipe
from model_export.distillation.rewording import Rewording
from model_export.distillation.sources import Sources, read_sources, training_pairs
from model_export.errors import BadPairsFile, ExportError


def write(path: Path, *rows: object) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return path


def test_pairs_come_with_or_without_labels_and_ads_by_the_default_template(tmp_path: Path) -> None:
    pairs = write(
        tmp_path / "pairs.jsonl",
        {"query": "q", "title": "a", "description": "b"},
        {"query": "q", "text": "c", "grade": 1, "max_grade": 2},
    )
    products = tmp_path / "products.csv"
    products.write_text("title,description\nd,e\nf,\n", encoding="utf-8")
    queries = tmp_path / "queries.txt"
    queries.write_text("one two\r\n\n three \n", encoding="utf-8")
    more = write(tmp_path / "more.jsonl", {"query": "four", "anything": 1})
    assert read_sources([pairs], [products], [queries, more]) == Sources(
        labels={("q", "a b"): None, ("q", "c"): 0.5},
        ads=[["a b", "c"], ["d e", "f"]],
        queries=["one two", "three", "four"],
    )


def test_a_label_is_not_lost_to_the_same_pair_without_one(tmp_path: Path) -> None:
    row = {"query": "q", "text": "a"}
    pairs = write(tmp_path / "pairs.jsonl", row, {**row, "label": 1}, row)
    assert read_sources([pairs], [], []) == Sources({("q", "a"): 1.0})


def test_a_faulty_row_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "rows.jsonl", {"query": "q", "title": "t"}, {"description": "d"})
    with pytest.raises(BadPairsFile, match=r"rows\.jsonl, line 2: 'query'"):
        read_sources([file], [], [])
    with pytest.raises(BadPairsFile, match=r"rows\.jsonl, line 2: the ad has neither"):
        read_sources([], [file], [])
    with pytest.raises(BadPairsFile, match=r"rows\.jsonl, line 2: 'query'"):
        read_sources([], [], [file])
    with pytest.raises(BadPairsFile, match=r"absent\.txt"):
        read_sources([], [], [tmp_path / "absent.txt"])


def test_sampled_pairs_join_those_that_were_read_and_keep_their_labels() -> None:
    pytest.importorskip("bm25s")
    ads = [["red shoe"], ["red lamp", "blue shoe"]]
    sources = Sources({("red shoe", "red shoe"): 1.0}, ads, ["blue"])
    made = training_pairs(sources, [], DistilRecipe(sampled_pairs=40, pseudo_query_share=0))
    assert made["red shoe", "red shoe"] == 1.0
    assert set(made) == {(q, a) for q in ("red shoe", "blue")
                         for a in ("red shoe", "red lamp", "blue shoe")}  # fmt: skip
    assert [label for label in made.values() if label is not None] == [1.0]


def test_a_held_out_query_never_enters_the_training_pairs() -> None:
    pytest.importorskip("bm25s")
    with pytest.raises(ExportError, match="such as 'blue'"):
        training_pairs(Sources({("Blue ", "a"): 1.0}), ["blue"], DistilRecipe())
    ads = ["blue", "red", "green", "long"]  # spans of one word, the held-out one among them
    sources = Sources({}, [ads], ["blue", "red"])
    made = training_pairs(sources, [" BLUE"], DistilRecipe(sampled_pairs=80))
    assert made
    assert "blue" not in {query for query, _ in made}


def test_nothing_to_train_on_is_said() -> None:
    with pytest.raises(ExportError, match="no training pairs"):
        training_pairs(Sources({}), [], DistilRecipe())
    with pytest.raises(ExportError, match="no products to pair them with"):
        training_pairs(Sources({("q", "a"): None}, [], ["q"]), [], DistilRecipe())


def test_rewording_without_queries_takes_the_ads_words_alone_or_says_what_is_missing() -> None:
    pytest.importorskip("bm25s")
    tokens = {word: number for number, word in enumerate(("red", "blue", "shoe", "lamp"))}
    rewording = Rewording(tokens, np.eye(4, dtype=np.float32))
    sources = Sources({}, [["red shoe", "blue lamp", "red lamp"]], ["Held out"])
    recipe = DistilRecipe(sampled_pairs=40, reworded_share=0.5)
    with pytest.raises(
        ExportError, match=r"^reworded_share is 0\.5, .*: give --queries or --pairs"
    ):
        training_pairs(sources, ["held out"], recipe, rewording)
    alone = replace(recipe, pseudo_query_share=1)
    assert training_pairs(sources, ["held out"], alone, rewording)


def test_variations_need_pairs_to_vary() -> None:
    sources = Sources({}, [["red shoe"]], ["red"])
    with pytest.raises(ExportError, match="varied_pairs is 7, and there are no pairs to vary"):
        training_pairs(sources, [], DistilRecipe(varied_pairs=7))
