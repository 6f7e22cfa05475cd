"""Callers in other languages against the product: a real process and a real tiny bundle."""

from __future__ import annotations

from pathlib import Path

from service.client import Ad
from tests.deploy.clients.conftest import KEY
from tests.deploy.clients.driver import AMPLE_MS, Caller
from tests.deploy.clients.toolchains import Built, run
from tests.end_to_end.running_service import RunningService
from tests.end_to_end.test_readme import shown_request_and_response

ADS = [
    Ad("B", "cheap red shoe", "run fast"),
    Ad("A", text="blue bag " * 100),
    Ad('\U0001f45f "1"\n', text='schöner "Schuh"\n\U0001f45f 日本'),
]


def test_a_call_returns_what_the_service_says(service: RunningService, caller: Caller) -> None:
    query = 'réd "shoe" \U0001f45f\n'
    body = {
        "query": query,
        "ads": [
            {"id": "B", "title": "cheap red shoe", "description": "run fast"},
            {"id": ADS[1].id, "text": ADS[1].text},
            {"id": ADS[2].id, "text": ADS[2].text},
        ],
        "min_score": 0.5,
    }
    said = service.score(body).json()["scores"]
    outcome = caller.call(service.url, query, ADS, min_score=0.5)
    assert [(ad.id, ad.score, ad.eligible) for ad in outcome.ads] == [
        (ad["id"], ad["score"], ad["eligible"]) for ad in said
    ]
    assert [ad.truncated for ad in outcome.ads] == [False, True, False]
    assert {ad.status for ad in outcome.ads} <= {"ok", "cached"}


def test_a_wrong_request_is_raised_with_the_service_s_code(
    service: RunningService, caller: Caller
) -> None:
    wrong = caller.call(service.url, "red", [Ad("A")], fallback=True)
    assert (wrong.raised, wrong.code, wrong.http_status) == (True, "invalid_request", 422)
    none = caller.call(service.url, "red", [], fallback=True)
    assert (none.raised, none.code) == (True, "invalid_request")
    many = caller.call(service.url, "red", [Ad("A", text="x")] * 1001)
    assert (many.raised, many.code) == (True, "too_many_ads")
    lost = caller.call(f"{service.url}/nowhere", "red", ADS)
    assert (lost.raised, lost.code, lost.http_status) == (True, "not_found", 404)


def test_a_key_lets_a_caller_in_and_without_one_no_ad_loses_its_score(
    service_with_keys: RunningService, caller: Caller
) -> None:
    url = service_with_keys.url
    let_in = caller.call(url, "red", ADS, header=f"Authorization: Bearer {KEY}")
    assert {ad.status for ad in let_in.ads} <= {"ok", "cached"}
    refused = caller.call(url, "red", ADS)
    assert (refused.raised, refused.code, refused.http_status) == (True, "unauthorized", 401)
    filled = caller.call(url, "red", ADS, fallback=True)
    assert (filled.raised, filled.code) == (False, "unauthorized")
    assert [ad.status for ad in filled.ads] == ["fallback"] * len(ADS)


def test_a_slash_behind_the_address_does_no_harm(service: RunningService, caller: Caller) -> None:
    assert not caller.call(f"{service.url}/", "red", ADS).raised


def printed(command: list[str], service: RunningService) -> list[tuple[str, float]]:
    """Ids and scores of what a program of few lines prints; each score must be the model's."""
    words = [word.replace("MS", str(AMPLE_MS)).replace("URL", service.url) for word in command]
    lines = run(words, Path.cwd()).splitlines()
    ads = [line.split(" ") for line in lines]
    assert {status for _, _, status in ads} <= {"ok", "cached"}
    return [(id_, float(score)) for id_, score, _ in ads]


def test_the_example_prints_the_scores_of_the_readmes_ads(
    service: RunningService, built: Built
) -> None:
    asked, _ = shown_request_and_response()
    said = service.score({"query": asked["query"], "ads": asked["ads"]}).json()["scores"]
    assert printed(built.example, service) == [(ad["id"], ad["score"]) for ad in said]


def test_the_example_needs_no_arguments(built: Built) -> None:
    # Whether or not something listens where it asks by default, each ad gets a score.
    lines = run(built.example_alone, Path.cwd()).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["A", "B", "C"]


def test_what_the_readme_shows_prints_the_scores(service: RunningService, built: Built) -> None:
    asked, _ = shown_request_and_response()
    body = {"query": asked["query"], "ads": asked["ads"][:1]}
    [said] = service.score(body).json()["scores"]
    assert printed(built.readme, service) == [("A", said["score"])]
