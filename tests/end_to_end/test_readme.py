"""What the README shows is what the product does."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.running_service import RunningService, running

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def default_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The default model, exported the way `make serve` does it; but nobody reads its latency."""
    from model_export.__main__ import main

    out = tmp_path_factory.mktemp("default") / "bundle"
    assert main(["export", "--precision", "int8", "--no-latency", "--out", str(out)]) == 0
    return out


@pytest.fixture(scope="module")
def service(default_bundle: Path) -> Iterator[RunningService]:
    with running(default_bundle) as started:
        yield started


def shown_request_and_response() -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON that the README's curl sends, and the JSON below it."""
    section = README.split("readme-example")[1]
    command, response = re.findall(r"```(?:sh|json)\n(.*?)```", section, re.DOTALL)[:2]
    words = shlex.split(command)
    return json.loads(words[words.index("-d") + 1]), json.loads(response)


def test_the_readmes_curl_returns_what_the_readme_shows(service: RunningService) -> None:
    request, shown = shown_request_and_response()
    assert request["timeout_ms"] == 250
    # The machine that tests may be full; what the example allows is for one that is not.
    answer = service.score({**request, "timeout_ms": 10_000}).json()
    assert answer["model"]["name"] == shown["model"]["name"]
    assert re.fullmatch("[0-9a-f]{12}", answer["model"]["version"])
    assert answer.keys() == shown.keys()
    for ad, shown_ad in zip(answer["scores"], shown["scores"], strict=True):
        # Other instruction sets may differ in late digits: see the golden pairs' tolerance.
        assert ad.pop("score") == pytest.approx(shown_ad.pop("score"), abs=0.02)
        assert ad == shown_ad


def test_the_default_model_ranks_a_fitting_ad_over_a_stranger(service: RunningService) -> None:
    ads = [
        {"id": "fits", "title": "Over-ear headphones with active noise cancelling"},
        {"id": "stranger", "title": "Garden hose, 30 metres"},
    ]
    body = {"query": "wireless noise cancelling headphones", "ads": ads}
    fits, stranger = (ad["score"] for ad in service.score(body).json()["scores"])
    assert fits > 3 * stranger


def test_leaving_out_the_word_that_matches_costs_the_default_model_most(
    service: RunningService,
) -> None:
    body = {"query": "printer ink", "ad": {"title": "Order ink online today"}}
    answer = service.client.post("/v1/explain", json=body).json()
    drops = {word["text"]: word["score_drop"] for word in answer["ad"]["words"]}
    assert max(drops, key=lambda word: drops[word]) == "ink"
    assert drops["ink"] > answer["score"] / 2
