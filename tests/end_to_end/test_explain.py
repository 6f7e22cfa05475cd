"""`POST /v1/explain` of a real process: every number must be one that `/v1/score` gives too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.end_to_end.running_service import RunningService, running

ROUTE = "/v1/explain"


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", "50000") as started:
        yield started


def explained(service: RunningService, query: str, ad: dict[str, str]) -> dict[str, Any]:
    response = service.client.post(ROUTE, json={"query": query, "ad": ad})
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def scores(service: RunningService, query: str, *texts: str) -> list[float]:
    ads = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    answer = service.score({"query": query, "ads": ads}).json()
    return [ad["score"] for ad in answer["scores"]]


def test_the_score_and_every_drop_are_those_of_the_score_route_to_the_last_bit(
    service: RunningService,
) -> None:
    answer = explained(service, "cheap red shoe", {"title": "red shoe", "description": "run fast"})
    [whole] = scores(service, "cheap red shoe", "red shoe run fast")
    assert answer["score"] == whole
    assert answer["ad"]["text"] == "red shoe run fast"
    left = ["shoe run fast", "red run fast", "red shoe fast", "red shoe run"]
    of_ad = [word["score_drop"] for word in answer["ad"]["words"]]
    assert of_ad == [whole - score for score in scores(service, "cheap red shoe", *left)]
    assert len(set(of_ad)) == 4
    of_query = [word["score_drop"] for word in answer["query"]["words"]]
    shorter = ["red shoe", "cheap shoe", "cheap red"]
    assert of_query == [whole - scores(service, query, "red shoe run fast")[0] for query in shorter]


def test_a_word_that_was_cut_off_is_not_left_out_and_would_change_nothing(
    service: RunningService,
) -> None:
    text = "red shoe run fast cheap " * 20 + "lamp"
    answer = explained(service, "blue bag", {"text": text})
    read = answer["ad"]["words"]
    assert answer["ad"]["cut_text"].endswith("lamp")
    assert "lamp" not in {word["text"] for word in read}
    assert text == text[: read[-1]["end"]] + answer["ad"]["cut_text"]
    whole, less = scores(service, "blue bag", text, text.removesuffix(" lamp"))
    assert answer["score"] == whole == less
    assert len(answer["tokens"]) == 64
    assert any(word["score_drop"] for word in read)


def test_what_was_made_up_stays_out_of_the_caches(service: RunningService) -> None:
    def entries() -> list[float]:
        return [service.metric(f'adrel_cache_entries{{cache="{c}"}}') for c in ("scores", "tokens")]

    scores(service, "new lamp", "offer")  # what was computed is kept when the next request comes
    before = entries()
    explained(service, "long blue chair", {"text": "best new long chair"})
    explained(service, "long blue chair", {"text": "best new long chair"})
    assert entries() == [before[0] + 1, before[1]]


def test_it_is_counted_under_its_route(service: RunningService) -> None:
    explained(service, "red", {"text": "shoe"})
    assert service.metric(f'adrel_requests_total{{outcome="ok",route="{ROUTE}"}}') >= 1
    assert service.metric(f'adrel_request_duration_seconds_count{{route="{ROUTE}"}}') >= 1


def test_without_time_there_is_an_error_of_the_usual_shape(service: RunningService) -> None:
    body = {"query": "red shoe", "ad": {"text": "blue shoe"}, "timeout_ms": 0.001}
    response = service.client.post(ROUTE, json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) in {
        (504, "deadline_exceeded"),
        (429, "deadline_unreachable"),
    }
    assert error.keys() == {"code", "message", "details"}


def test_a_body_over_the_limit_is_refused(service: RunningService) -> None:
    response = service.client.post(ROUTE, json={"query": "a", "ad": {"text": "b" * 60_000}})
    assert (response.status_code, response.json()["error"]["code"]) == (413, "body_too_large")


def test_the_openapi_document_promises_what_is_sent_and_its_example_works(
    service: RunningService,
) -> None:
    document = service.client.get("/openapi.json").json()
    route = document["paths"][ROUTE]["post"]
    body = route["requestBody"]["content"]["application/json"]
    components = {"components": document["components"]}
    [example] = document["components"]["schemas"]["ExplainRequest"]["examples"]
    jsonschema.validate(example, {**body["schema"], **components})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"query": "red"}, {**body["schema"], **components})
    for sent in (example, {"query": ""}):
        response = service.client.post(ROUTE, json=sent)
        promised = route["responses"][str(response.status_code)]["content"]["application/json"]
        jsonschema.validate(response.json(), {**promised["schema"], **components})
    fields = document["components"]["schemas"]["ExplainResponse"]["properties"]
    assert fields.keys() == explained(service, "red", {"text": "shoe"}).keys()
