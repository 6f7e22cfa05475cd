"""Another model in the place of the one that serves: a real process, under load, by its signal."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.domain import Ad
from service.scoring.bundle import open_bundle
from tests.bundle_variants import damage, link
from tests.conftest import export_tiny
from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_admin_port import admin_url
from tests.tiny_models import WORDS, write_bert
from tests.waiting import until

DEADLINE_S = 60
N_CALLERS = 4
QUERIES = ("red shoe", "cheap bag")
TEXTS = [" ".join(random.Random(n).choices(WORDS, k=1 + n % 9)) for n in range(40)]  # noqa: S311  # a fixed sequence is wanted


@pytest.fixture(scope="module")
def two_logits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of other weights and another head: its cached scores have another size."""
    folder = tmp_path_factory.mktemp("two-logits")
    labels = {"id2label": {0: "irrelevant", 1: "relevant"}}
    checkpoint = write_bert(folder / "checkpoint", n_labels=2, seed=1, **labels)
    return export_tiny(checkpoint, folder / "bundle", "fp32")


def expected_scores(bundle: Path) -> tuple[str, dict[tuple[str, str], float]]:
    """The version, and the score of each query and text, each computed alone."""
    opened = open_bundle(bundle)
    scores = {
        (query, text): float(opened.to_scores(opened.model.logits(opened.encode(query, [ad])))[0])
        for query, text in itertools.product(QUERIES, TEXTS)
        for ad in [Ad("a", text=text)]
    }
    return opened.manifest.model.version, scores


@dataclass
class Load:
    """Callers that ask without a pause, and what they were answered."""

    service: RunningService
    answers: list[tuple[str, list[str], httpx.Response]] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    def call(self, seed: int) -> None:
        rng = random.Random(seed)  # noqa: S311
        with httpx.Client(base_url=self.service.url, timeout=60) as client:
            while not self.stopped.is_set():
                query, texts = rng.choice(QUERIES), rng.sample(TEXTS, rng.randint(1, 12))
                ads = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
                body = {"query": query, "ads": ads}
                self.answers.append((query, texts, client.post("/v1/score", json=body)))

    def goes_on(self) -> None:
        """Wait until some more are answered."""
        enough = len(self.answers) + 20
        until(lambda: len(self.answers) >= enough, "no more answers came")


@contextmanager
def under_load(service: RunningService) -> Iterator[Load]:
    load = Load(service)
    with ThreadPoolExecutor(N_CALLERS) as executor:
        callers = [executor.submit(load.call, seed) for seed in range(N_CALLERS)]
        try:
            yield load
        finally:
            load.stopped.set()
        for caller in callers:
            caller.result()


@contextmanager
def serving(bundle: Path, folder: Path, *arguments: str) -> Iterator[RunningService]:
    """Serve a link to the bundle, `folder / "live"`."""
    link(bundle, folder / "live")
    with running(folder / "live", *arguments) as service:
        yield service


def reload(service: RunningService, result: str) -> dict[str, Any]:
    """Send the signal and wait until a reload has ended so; the models' history then."""
    sample = f'adrel_reloads_total{{result="{result}"}}'
    before = service.metric(sample)
    service.process.send_signal(signal.SIGHUP)
    service.reaches(sample, lambda value: value == before + 1)
    history: dict[str, Any] = service.client.get("/v1/models").json()
    assert history["last_reload"]["result"] == result
    return history


@pytest.mark.parametrize("cache_bytes", ["0", "1000000"])
def test_no_request_fails_and_none_is_answered_by_two_models_while_models_change(
    cache_bytes: str,
    tiny_bundle_int8: Path,
    tiny_bundle_fp32: Path,
    two_logits: Path,
    tmp_path: Path,
) -> None:
    sequence = [tiny_bundle_fp32, two_logits, tiny_bundle_int8]
    expected = dict(expected_scores(bundle) for bundle in sequence)
    assert len({tuple(scores.values()) for scores in expected.values()}) == len(sequence)
    with serving(tiny_bundle_int8, tmp_path, "--cache-bytes", cache_bytes) as service:
        with under_load(service) as load:
            for bundle in sequence:
                load.goes_on()
                link(bundle, tmp_path / "live")
                history = reload(service, "changed")
                assert history["serving"]["bundle"] == bundle.resolve().name
        assert not [entry for entry in service.log if entry["level"] in ("warning", "error")]
        identity = service.client.get("/v1/model").json()["model"]
        labels = f'name="{identity["name"]}",precision="int8",provider="cpu"'
        info = f'adrel_model_info{{{labels},version="{identity["version"]}"}}'
        assert service.metric(info) == 1
    versions = set()
    for query, texts, response in load.answers:
        assert response.status_code == 200, response.text
        answer = response.json()
        version = answer["model"]["version"]
        versions.add(version)
        scores = [ad["score"] for ad in answer["scores"]]
        assert scores == [expected[version][query, text] for text in texts]
    assert versions == expected.keys()


def test_all_that_is_told_of_the_model_follows_the_change(
    tiny_bundle_int8: Path, two_logits: Path, tmp_path: Path
) -> None:
    with serving(tiny_bundle_int8, tmp_path) as service:
        service.score({"query": "red", "ads": [{"id": "1", "text": "shoe"}]})
        assert service.metric("adrel_score_drift_scores") > 0
        began_s = service.metric("adrel_model_loaded_timestamp_seconds")
        link(two_logits, tmp_path / "live")
        new = reload(service, "changed")["serving"]
        assert service.metric("adrel_score_drift_scores") == 0
        assert service.metric("adrel_model_loaded_timestamp_seconds") > began_s
        exposed = service.client.get("/metrics").text.splitlines()
        (told,) = [line for line in exposed if line.startswith("adrel_model_info{")]
        assert f'version="{new["version"]}"' in told
        assert service.client.get("/v1/models").json()["data"][0]["id"] == new["name"]
        info = service.client.get("/info").json()
        assert (info["model_id"], info["model_sha"]) == (new["name"], new["version"])
        assert info["model_dtype"] == "float32"
        path = f"/v2/models/{new['name']}/versions/{new['version']}"
        assert service.client.get(path).json()["versions"] == [new["version"]]
        old = open_bundle(tiny_bundle_int8).manifest.model
        gone = service.client.get(f"/v2/models/{old.name}/versions/{old.version}")
        assert gone.status_code == 404


@pytest.mark.parametrize(
    ("spoil", "why"),
    [(damage, "model.onnx has sha256"), (shutil.rmtree, "no bundle")],
)
def test_a_bundle_that_cannot_be_served_leaves_the_old_model(
    spoil: Callable[[Path], None],
    why: str,
    tiny_bundle_int8: Path,
    tiny_bundle_fp32: Path,
    tmp_path: Path,
) -> None:
    bad = Path(shutil.copytree(tiny_bundle_fp32, tmp_path / "bad"))
    spoil(bad)
    with serving(tiny_bundle_int8, tmp_path) as service:
        body = {"query": "red", "ads": [{"id": "1", "text": "shoe"}]}
        before = service.score(body).json()
        if bad.exists():
            link(bad, tmp_path / "live")
        else:
            (tmp_path / "live").unlink()
        history = reload(service, "failed")
        assert history["serving"]["version"] == before["model"]["version"]
        [entry] = [one for one in service.log if one["level"] == "error"]
        assert why in entry["why"]
        after = service.score(body).json()
        assert after["scores"][0]["score"] == before["scores"][0]["score"]
        link(tiny_bundle_fp32, tmp_path / "live")
        assert reload(service, "changed")["previous"]["version"] == before["model"]["version"]


def test_the_same_version_changes_nothing(tiny_bundle_int8: Path, tmp_path: Path) -> None:
    with serving(tiny_bundle_int8, tmp_path) as service:
        history = reload(service, "unchanged")
        assert history["previous"] is None


def test_operators_reload_on_the_admin_port_and_hear_how_it_ended(
    tiny_bundle_int8: Path, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    held = Path(shutil.copytree(tiny_bundle_fp32, tmp_path / "held"))
    with (
        serving(tiny_bundle_int8, tmp_path, "--admin-port", "0") as service,
        httpx.Client(base_url=admin_url(service), timeout=DEADLINE_S) as admin,
        ThreadPoolExecutor(2) as executor,
    ):
        link(held, tmp_path / "live")
        os.truncate(held / "model.onnx", 2**40)  # mostly a hole; to hash it takes many minutes
        asked = {executor.submit(admin.post, "/admin/reload") for _ in range(2)}
        done, waiting = wait(asked, DEADLINE_S, return_when=FIRST_COMPLETED)
        os.truncate(held / "model.onnx", 0)
        (second,), (first,) = done, waiting
        assert second.result().status_code == 409
        assert second.result().json()["error"]["code"] == "reload_running"
        assert first.result().status_code == 422
        error = first.result().json()["error"]
        assert error["code"] == "bundle_refused"
        assert "model.onnx has sha256" in error["message"]
        before = service.client.get("/v1/models").json()
        assert (before["previous"], before["last_reload"]["result"]) == (None, "failed")
        link(tiny_bundle_fp32, tmp_path / "live")
        changed = admin.post("/admin/reload").json()
        after = admin.get("/v1/models").json()
        assert changed == {**after["last_reload"], "serving": after["serving"]}
        assert after["previous"]["version"] == before["serving"]["version"]
        body = {"query": "red", "ads": [{"id": "1", "text": "shoe"}]}
        assert service.score(body).json()["model"]["version"] == after["serving"]["version"]
