"""A second model beside the one that serves: callers see nothing of it, operators do."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from service.domain import Ad
from service.scoring.bundle import Bundle, open_bundle
from tests.bundle_variants import link, of_another_version
from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_reload import reload, serving
from tests.end_to_end.test_serving import start_fails

DEADLINE_S = 30
TEXTS = ["shoe", "red bag", "cheap blue shoe", "red shoe"]
BODY: dict[str, Any] = {
    "query": "red shoe",
    "ads": [{"id": str(number), "text": text} for number, text in enumerate(TEXTS)],
    "min_score": 0.5,
}


def pairs(result: str) -> str:
    return f'adrel_shadow_pairs_total{{result="{result}"}}'


def scores_of(bundle: Bundle) -> list[float]:
    ads = [Ad(str(number), text=text) for number, text in enumerate(TEXTS)]
    return [float(bundle.to_scores(bundle.model.logits(bundle.encode("red shoe", [ad])))[0])
            for ad in ads]  # fmt: skip


def wait_for_shadow(service: RunningService, n_pairs: int) -> None:
    service.reaches(pairs("scored"), lambda value: value == n_pairs)


def test_the_shadow_scores_what_was_computed_and_what_was_cached_and_tells_how_they_differ(
    tiny_bundle_int8: Path, tiny_bundle_fp32: Path
) -> None:
    given, shadow = (scores_of(open_bundle(path)) for path in (tiny_bundle_int8, tiny_bundle_fp32))
    arguments = ("--shadow-bundle", str(tiny_bundle_fp32), "--shadow-share", "1")
    with running(tiny_bundle_int8, *arguments) as service:
        for status in ("ok", "cached"):
            answer = service.score(BODY).json()
            assert [ad["score"] for ad in answer["scores"]] == given
            assert {ad["status"] for ad in answer["scores"]} == {status}
        wait_for_shadow(service, 2 * len(TEXTS))
        told = {
            side: service.metric(f'adrel_shadow_score_difference_sum{{direction="{side}"}}')
            for side in ("higher", "lower")
        }
        sum_of_differences = 2 * (sum(shadow) - sum(given))
        assert told["higher"] - told["lower"] == pytest.approx(sum_of_differences)
        assert service.metric("adrel_shadow_rank_agreement_count") == 2
        tops = [service.metric(f'adrel_shadow_tops_total{{result="{result}"}}')
                for result in ("same", "other")]  # fmt: skip
        assert sum(tops) == 2
        decided = [service.metric(f'adrel_shadow_decisions_total{{result="{result}"}}')
                   for result in ("kept", "gained", "lost")]  # fmt: skip
        assert sum(decided) == 2 * len(TEXTS)
        assert service.metric("adrel_shadow_pair_duration_seconds_count") == 2 * len(TEXTS)
        told_of = service.client.get("/v1/models").json()
        assert told_of["shadow"]["version"] == open_bundle(tiny_bundle_fp32).manifest.model.version
        assert (told_of["shadow"]["role"], told_of["shadow"]["share"]) == ("shadow", 1.0)
        assert len(told_of["data"]) == 1
        assert not [entry for entry in service.log if entry["level"] in ("warning", "error")]


def test_other_protocols_are_compared_and_made_up_texts_are_not(
    tiny_bundle_int8: Path, tiny_bundle_fp32: Path
) -> None:
    arguments = ("--shadow-bundle", str(tiny_bundle_fp32), "--shadow-share", "1")
    with running(tiny_bundle_int8, *arguments) as service:
        explained = {"query": "red", "ad": {"text": "shoe bag"}}
        assert service.client.post("/v1/explain", json=explained).status_code == 200
        rerank = {"query": "red", "documents": TEXTS, "model": "m"}
        assert service.client.post("/v2/rerank", json=rerank).status_code == 200
        several = {"inputs": [["red", "shoe"], ["blue", "bag"]]}
        assert service.client.post("/predict", json=several).status_code == 200
        wait_for_shadow(service, len(TEXTS) + 2)
        assert service.metric("adrel_shadow_rank_agreement_count") == 1


def test_a_reload_keeps_the_shadow_and_so_does_the_shadows_own_promotion(
    tiny_bundle_int8: Path, tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    other = of_another_version(tiny_bundle_int8, tmp_path / "other")
    arguments = ("--shadow-bundle", str(tiny_bundle_fp32), "--shadow-share", "1")
    with serving(tiny_bundle_int8, tmp_path, *arguments) as service:
        link(other, tmp_path / "live")
        reload(service, "changed")
        service.score(BODY)
        wait_for_shadow(service, len(TEXTS))
        link(tiny_bundle_fp32, tmp_path / "live")
        history = reload(service, "changed")
        assert history["serving"]["version"] == history["shadow"]["version"]
        equal = 'adrel_shadow_score_difference_count{direction="equal"}'
        before = service.metric(equal)
        service.score(BODY)
        service.reaches(equal, lambda value: value == before + len(TEXTS))


def test_a_shadow_that_cannot_be_served_stops_the_start_by_its_name(
    tiny_bundle_int8: Path, tmp_path: Path
) -> None:
    bundles = ("--bundle", str(tiny_bundle_int8), "--shadow-bundle", str(tmp_path))
    told = start_fails(*bundles, "--log-level", "error")
    assert "adrel: shadow_bundle: no bundle at" in told


def test_a_service_without_a_shadow_says_nothing_of_one(tiny_bundle_int8: Path) -> None:
    with running(tiny_bundle_int8) as service:
        assert "adrel_shadow" not in service.client.get("/metrics").text
        assert service.client.get("/v1/models").json()["shadow"] is None


def test_a_stop_does_not_wait_for_the_shadow(
    tiny_bundle_int8: Path, tiny_bundle_fp32: Path
) -> None:
    arguments = ("--shadow-bundle", str(tiny_bundle_fp32), "--shadow-share", "1")
    with running(tiny_bundle_int8, *arguments) as service:
        for number in range(5):
            ads = [{"id": str(n), "text": f"shoe {number} {n}"} for n in range(100)]
            assert service.score({"query": "red", "ads": ads}).status_code == 200
        assert service.metric("adrel_shadow_waiting_pairs") > 0
        service.process.send_signal(signal.SIGTERM)
        assert service.process.wait(timeout=DEADLINE_S) == 0
    assert not [entry for entry in service.log if entry["level"] in ("warning", "error")]
