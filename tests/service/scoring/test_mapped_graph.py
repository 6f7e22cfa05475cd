from __future__ import annotations

import logging
from pathlib import Path

import pytest

from service.domain import Ad
from service.scoring.bundle import open_bundle
from service.scoring.bundle_files import MODEL_FILE
from service.scoring.golden_pairs import self_test
from service.scoring.mapped_graph import GRAPH, mapped_graph

ADS = [Ad("a", text="red shoe"), Ad("b", text="cheap bag " * 9)]


def test_shared_weights_give_the_same_logits_to_the_last_bit(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    own, shared = open_bundle(tiny_bundle_int8), open_bundle(tiny_bundle_int8, mapped=tmp_path)
    assert self_test(shared) == self_test(own)
    logits = [each.model.logits(each.encode("red", ADS)) for each in (own, shared)]
    assert (logits[0] == logits[1]).all()
    assert list(tmp_path.rglob("*.weights"))


def test_the_first_who_asks_writes_them_and_the_others_open_them(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    model = tiny_bundle_int8 / MODEL_FILE
    written = mapped_graph(model, "abc", tmp_path)
    assert written == tmp_path / "abc" / GRAPH
    before = written.stat()
    assert mapped_graph(model, "abc", tmp_path) == written
    assert written.stat() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["abc"]


def test_where_they_cannot_be_written_each_has_its_own_and_the_log_says_why(
    tiny_bundle_int8: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = tiny_bundle_int8 / MODEL_FILE
    with caplog.at_level(logging.WARNING):
        assert mapped_graph(model, "abc", tmp_path / "absent") == model
    assert "absent" in vars(caplog.records[0])["why"]


def test_a_graph_that_cannot_be_opened_leaves_nothing_behind(tmp_path: Path) -> None:
    broken, folder = tmp_path / "model.onnx", tmp_path / "graphs"
    broken.write_bytes(b"no graph")
    folder.mkdir()
    assert mapped_graph(broken, "abc", folder) == broken
    assert list(folder.iterdir()) == []
