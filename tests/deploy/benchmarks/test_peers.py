from __future__ import annotations

import json
import os
import select
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from deploy.benchmarks.mixed_pairs import MixedRequest
from deploy.benchmarks.peers.contenders import BY_HAND, SETTINGS, Contender, adrel, peers
from deploy.benchmarks.peers.environments import PACKAGES
from deploy.benchmarks.peers.measure import Figures
from deploy.benchmarks.peers.models import ModelFiles
from deploy.benchmarks.peers.plain_model import PlainModel
from deploy.benchmarks.peers.report import as_json, draw, table
from deploy.benchmarks.server_process import NotServing, running

WORK = Path("work")
FILES = ModelFiles(WORK / "fp32.onnx", WORK / "int8.onnx", WORK / "t.json", WORK / "checkpoint")
REQUEST = MixedRequest("red shoe", ["blue lamp", "chair"])

SERVER = """
import http.server, os, signal, sys
held = open(os.environ["HELD"], "w")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
if os.fork() == 0:  # a worker that does not end by itself
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.pause()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[-1])), Handler).serve_forever()
"""


def figures(pairs_per_s: float) -> Figures:
    return Figures(pairs_per_s, 10.0, 20.0, failed=0, worst_score=0.1, mean_score=0.01)


def only(contenders: Sequence[Contender]) -> Contender:
    [one] = contenders
    return one


def test_every_peer_has_an_environment_and_settings() -> None:
    assert set(SETTINGS) == set(PACKAGES)
    for name, settings in SETTINGS.items():
        measured = [one.setting for one in peers(WORK, FILES, name, all_settings=False)]
        assert sum(BY_HAND not in setting for setting in measured) == 1
        assert len(peers(WORK, FILES, name, all_settings=True)) == len(settings)


def test_tensors_repeat_the_query_so_that_batches_can_be_joined() -> None:
    contender = peers(WORK, FILES, "mlserver", all_settings=False)[0]
    inputs = json.loads(contender.body_bytes(REQUEST))["inputs"]
    assert [tensor["data"] for tensor in inputs] == [["red shoe", "red shoe"], REQUEST.ads]
    assert contender.scores({"outputs": [{"data": [0.1, 0.2]}]}) == [0.1, 0.2]


def test_reranked_documents_are_put_back_into_the_order_of_the_ads() -> None:
    contender = only(peers(WORK, FILES, "infinity", all_settings=False))
    results = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]
    assert contender.scores({"results": results}) == [0.2, 0.9]


def test_our_own_service_is_asked_in_its_own_words(tiny_bundle_int8: Path) -> None:
    contender = adrel("ours", tiny_bundle_int8, {"ADREL_X": "1"}, FILES)
    ads = json.loads(contender.body_bytes(REQUEST))["ads"]
    assert ads == [{"id": "0", "text": "blue lamp"}, {"id": "1", "text": "chair"}]
    assert contender.scores({"scores": [{"score": 0.5}, {"score": 0.6}]}) == [0.5, 0.6]
    assert contender.setting == "ADREL_X=1"


def test_micro_batches_keep_the_order_of_the_ads(tiny_bundle_fp32: Path) -> None:
    model, tokenizer = tiny_bundle_fp32 / "model.onnx", tiny_bundle_fp32 / "tokenizer.json"
    ads = ["cheap long chair offer", "lamp", "run fast", "new blue bag"]
    one_run = PlainModel(model, tokenizer, threads=1).score_ads("red shoe", ads)
    in_two = PlainModel(model, tokenizer, threads=1, micro_batch=2).score_ads("red shoe", ads)
    assert in_two == pytest.approx(one_run, abs=1e-5)
    assert len(set(one_run)) == len(ads)


def test_the_table_has_the_fastest_first_and_ratios_to_the_fastest_server() -> None:
    results = {
        ("slow", ""): [figures(40), figures(60)],
        ("limit", ""): [figures(200)],
        ("fast", ""): [figures(100)],
        ("broken", ""): [],
    }
    rows = [[cell.strip() for cell in line.split("|")] for line in table(results).splitlines()[2:]]
    assert [(row[1], row[3], row[4]) for row in rows] == [
        ("limit", "200", "2.00"),
        ("fast", "100", "1.00"),
        ("slow", "50", "0.50"),
    ]


def test_the_report_says_why_a_server_did_not_run_and_is_json() -> None:
    nan = Figures(1.0, float("nan"), float("nan"), 0, 0.0, 0.0)
    report = as_json({("a", "b"): [nan], ("c", "d"): []}, {("c", "d"): "it ended"}, {}, {})
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert [row["did_not_run"] for row in report["rows"]] == [None, "it ended"]
    assert report["rows"][0]["rounds"][0]["p50_ms"] is None


def test_nothing_of_a_server_outlives_its_block(tmp_path: Path) -> None:
    pipe = tmp_path / "held"  # by the server and its worker; it closes when both are gone
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        command = [sys.executable, "-c", SERVER]
        with (
            running(command, {"HELD": str(pipe)}, tmp_path / "log", "/", b"{}"),
            pytest.raises(BlockingIOError),  # held, and nothing written
        ):
            os.read(reader, 1)
        assert select.select([reader], [], [], 10)[0] == [reader]
        assert os.read(reader, 1) == b""
    finally:
        os.close(reader)


def test_a_server_that_ends_at_once_is_an_error_with_its_exit_code(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "raise SystemExit(3)"]
    with (
        pytest.raises(NotServing, match="ended with 3"),
        running(command, {}, tmp_path / "log", "/", b"{}"),
    ):
        pass


def test_the_plot_is_a_picture(tmp_path: Path) -> None:
    draw({("adrel", ""): [figures(5)], ("naive", "x"): [figures(3)]}, tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")
