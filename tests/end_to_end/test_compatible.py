"""Other servers' protocols, by plain HTTP as their documentation has it."""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.compatible_calls import (
    ADS,
    INFER,
    POSTED,
    QUERY,
    a_body,
    best_first,
    message_of,
    native,
    path_of,
    post,
    texts_tensor,
)
from tests.end_to_end.running_service import RunningService, running


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", "50000") as started:
        yield started


@pytest.fixture(scope="module")
def model(service: RunningService) -> dict[str, str]:
    identity: dict[str, str] = service.client.get("/v1/model").json()["model"]
    return identity


@pytest.fixture(scope="module")
def scores(service: RunningService) -> list[float]:
    """Of each ad, by our own API."""
    return native(service, QUERY, ADS)


def test_tei_ranks_by_our_scores_and_says_where_the_time_went(
    service: RunningService, scores: list[float]
) -> None:
    response = post(service, "/rerank", {"query": QUERY, "texts": ADS})
    expected = [{"index": index, "score": scores[index]} for index in best_first(scores)]
    assert response.json() == expected
    assert response.headers["x-compute-type"] == "cpu+optimized"
    n_chars = len(QUERY) * len(ADS) + sum(map(len, ADS))
    assert response.headers["x-compute-characters"] == str(n_chars)
    for name in ("total", "tokenization", "queue", "inference", "compute"):
        assert response.headers[f"x-{name}-time"].isdecimal()


def test_tokens_are_counted_where_they_are_computed(service: RunningService) -> None:
    body = {"query": "blue lamp", "texts": ["run fast", "run fast", "chair"]}
    first, again = (post(service, "/rerank", body) for _ in range(2))
    # [CLS] blue lamp [SEP] run fast [SEP], once, and [CLS] blue lamp [SEP] chair [SEP]
    assert first.headers["x-compute-tokens"] == "13"
    assert again.headers["x-compute-tokens"] == "0"


def test_tei_gives_logits_and_texts_on_demand(service: RunningService, scores: list[float]) -> None:
    body = {"query": QUERY, "texts": ADS, "raw_scores": True, "return_text": True}
    ranks = post(service, "/rerank", {**body, "truncation_direction": "right"}).json()
    assert [rank["index"] for rank in ranks] == best_first(scores)
    assert [rank["text"] for rank in ranks] == [ADS[index] for index in best_first(scores)]
    infer = a_body(INFER, QUERY, ADS) | {"outputs": [{"name": "logit"}]}
    logits = post(service, INFER, infer).json()["outputs"][0]["data"]
    assert [rank["score"] for rank in ranks] == [logits[i] for i in best_first(logits)]
    assert [1 / (1 + math.exp(-logit)) for logit in logits] == pytest.approx(scores)


def test_tei_predicts_one_pair_or_many_each_with_its_own_query(service: RunningService) -> None:
    pairs = [["red shoe", "cheap bag"], ["lamp", "chair"], ["red shoe", "lamp"], ["lamp", "chair"]]
    expected = [native(service, query, [ad])[0] for query, ad in pairs]
    many = post(service, "/predict", {"inputs": pairs}).json()
    assert many == [[{"score": score, "label": "relevant"}] for score in expected]
    assert post(service, "/predict", {"inputs": pairs[0]}).json() == many[0]


def test_tei_refuses_what_does_not_fit_only_where_cutting_is_forbidden(
    service: RunningService,
) -> None:
    body = {"query": "red", "texts": ["lamp", "shoe " * 1000]}
    assert post(service, "/rerank", body).status_code == 200
    response = post(service, "/rerank", {**body, "truncate": False})
    assert response.status_code == 413
    assert response.json()["error_type"] == "Validation"
    assert "texts[1]: does not fit" in response.json()["error"]
    long = ["red", "shoe " * 1000]
    for inputs, place in ((long, "inputs[1]: "), ([["red", "lamp"], long], "inputs[1][1]: ")):
        response = post(service, "/predict", {"inputs": inputs, "truncate": False})
        assert response.json()["error"].startswith(place)


def test_tei_tells_of_the_model_and_its_health(
    service: RunningService, model: dict[str, str]
) -> None:
    info = service.client.get("/info").json()
    assert (info["model_id"], info["model_sha"]) == (model["name"], model["version"])
    assert info["max_client_batch_size"] == 1000
    assert info["max_batch_requests"] == 32
    assert info["model_dtype"] == "int8"
    assert service.client.get("/health").json()["unix"] == pytest.approx(time.time(), abs=60)


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
def test_documents_are_ranked_and_the_best_kept(
    service: RunningService, scores: list[float], path: str
) -> None:
    body = {"model": "rerank-v3.5", "query": QUERY, "documents": ADS, "user": "unknown field"}
    answer = post(service, path, body).json()
    order = [(one["index"], one["relevance_score"]) for one in answer["results"]]
    assert order == [(index, scores[index]) for index in best_first(scores)]
    assert {"id", "model", "results", "usage"} <= answer.keys()
    for top_n, n_results in ((1, 1), (2, 2), (99, 3), (0, 3), (None, 3)):
        kept = post(service, path, {**body, "top_n": top_n}).json()["results"]
        assert kept == answer["results"][:n_results]


@pytest.mark.parametrize(
    ("path", "fields", "document"),
    [
        ("/v1/rerank", {}, {"text": "lamp"}),
        ("/v1/rerank", {"return_documents": True}, {"text": "lamp"}),
        ("/v1/rerank", {"return_documents": False}, None),
        ("/v1/rerank", {"max_chunks_per_doc": 10}, None),
        ("/v2/rerank", {}, None),
        ("/v2/rerank", {"return_documents": True}, {"text": "lamp"}),
        ("/rerank", {}, {"text": "lamp"}),
        ("/rerank", {"return_documents": True}, "lamp"),
        ("/rerank", {"return_documents": False}, None),
    ],
)
def test_documents_come_back_in_the_form_that_the_client_knows(
    service: RunningService, path: str, fields: dict[str, object], document: object
) -> None:
    body = {"query": QUERY, "documents": ["lamp"], **fields}
    assert post(service, path, body).json()["results"][0].get("document") == document


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (path, fields)
        for path in ("/rerank", "/v1/rerank", "/v2/rerank", "/score", "/v1/score")
        for fields in (
            {"use_activation": False},
            {"activation": False},
            {"softmax": False},
            {"raw_scores": True},
        )
        if "score" not in path or "raw_scores" not in fields
    ],
)
def test_logits_are_given_wherever_vllms_clients_ask_for_them(
    service: RunningService, path: str, fields: dict[str, bool]
) -> None:
    infer = a_body(INFER, QUERY, ADS) | {"outputs": [{"name": "logit"}]}
    logits = post(service, INFER, infer).json()["outputs"][0]["data"]
    body = {"query": QUERY, "documents": ADS}
    if "score" in path:
        body = {"text_1": QUERY, "text_2": ADS}
    answer = post(service, path, {**body, **fields}).json()
    values = {one["index"]: one["score"] for one in answer.get("data", ())}
    values |= {one["index"]: one["relevance_score"] for one in answer.get("results", ())}
    assert values == dict(enumerate(logits))


@pytest.mark.parametrize("path", ["/rerank", "/v1/rerank", "/v2/rerank", "/score", "/v1/score"])
def test_fewer_tokens_than_the_models_room_are_refused_and_an_id_is_echoed_everywhere(
    service: RunningService, path: str
) -> None:
    body: dict[str, Any] = {"query": QUERY, "documents": ADS, "request_id": "auction-3"}
    if "score" in path:
        body = {"text_1": QUERY, "text_2": ADS, "request_id": "auction-3"}
    answer = post(service, path, {**body, "truncate_prompt_tokens": -1})
    assert answer.json()["id"] == answer.headers["X-Request-Id"] == "auction-3"
    refused = post(service, path, {**body, "truncate_prompt_tokens": 5})
    assert refused.status_code == 400
    assert (
        "truncate_prompt_tokens: got 5; pairs are read up to 64"
        in refused.json()["error"]["message"]
    )


@pytest.mark.parametrize("path", POSTED)
def test_texts_that_were_cut_are_counted_in_a_header(service: RunningService, path: str) -> None:
    long = "shoe " * 1000
    answer = post(service, path, a_body(path, "red", ["lamp", long, f"blue {long}"]))
    assert answer.headers["X-Truncated-Texts"] == "2"
    assert "X-Truncated-Texts" not in post(service, path, a_body(path, "red", ["lamp"])).headers
    if path in ("/v1/rerank", "/v2/rerank"):
        (warning,) = answer.json()["meta"]["warnings"]
        assert warning.startswith("2 of 3 documents were cut: ")
        assert warning.endswith(" up to 64 tokens")


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank"])
def test_objects_come_back_as_they_were_sent(service: RunningService, path: str) -> None:
    document = {
        "title": "red shoe",
        "text": "lamp",
        "url": "x",
        "price": 10**25,
        "more": {"a": 1.5},
    }
    for fields in ({}, {"rank_fields": ["title"]}):
        body = {"query": QUERY, "documents": [document], "return_documents": True, **fields}
        assert post(service, path, body).json()["results"][0]["document"] == document


def test_rank_fields_that_are_null_are_absent(service: RunningService) -> None:
    body = {"query": QUERY, "documents": ["lamp"], "rank_fields": None}
    assert post(service, "/v1/rerank", body).json()["results"][0]["document"] == {"text": "lamp"}


def test_null_texts_are_absent_where_documents_are_given(service: RunningService) -> None:
    body = {"query": QUERY, "texts": None, "documents": ["lamp"]}
    assert post(service, "/rerank", body).json()["object"] == "rerank"


@pytest.mark.parametrize("path", POSTED)
def test_what_cannot_be_complete_in_time_is_refused_at_once(
    service: RunningService, path: str
) -> None:
    texts = [f"shoe {number} " + "x " * 12 for number in range(700)]
    body = a_body(path, "never asked", texts)
    late = post(service, path, body, headers={"X-Request-Timeout-Ms": "5"})
    assert late.status_code == 429, late.text
    assert "700 ads would take" in message_of(path, late.json())


def test_documents_may_be_objects(service: RunningService, scores: list[float]) -> None:
    documents = [{"text": ad, "id": 7} for ad in ADS]
    answer = post(service, "/v2/rerank", {"query": QUERY, "documents": documents}).json()
    assert answer["results"][0]["relevance_score"] == max(scores)


def test_equal_scores_keep_the_order_of_the_documents(service: RunningService) -> None:
    documents = ["lamp", "shoe", "lamp", "shoe", "lamp"]
    by_document: dict[str, list[int]] = {"lamp": [], "shoe": []}
    for one in post(service, "/v2/rerank", {"query": "red", "documents": documents}).json()[
        "results"
    ]:
        by_document[documents[one["index"]]].append(one["index"])
    assert by_document == {"lamp": [0, 2, 4], "shoe": [1, 3]}


@pytest.mark.parametrize("path", ["/score", "/v1/score"])
@pytest.mark.parametrize(
    ("left", "right"),
    [("text_1", "text_2"), ("data_1", "data_2"), ("queries", "documents"), ("queries", "items")],
)
def test_vllm_scores_one_with_one_one_with_many_and_many_with_many(
    service: RunningService, scores: list[float], path: str, left: str, right: str
) -> None:
    def asked(one: object, other: object, **fields: object) -> list[float]:
        answer = post(service, path, {left: one, right: other, "model": "m", **fields}).json()
        assert answer["object"] == "list"
        assert [entry["index"] for entry in answer["data"]] == list(range(len(answer["data"])))
        return [entry["score"] for entry in answer["data"]]

    assert asked(QUERY, ADS[0]) == scores[:1]
    assert asked(QUERY, ADS) == asked([QUERY], ADS) == scores
    others = ["blue", QUERY, "lamp"]
    expected = [native(service, query, [ad])[0] for query, ad in zip(others, ADS, strict=True)]
    assert asked(others, ADS, priority=1) == expected
    assert asked(others, ADS, use_activation=False) != expected


def test_the_open_inference_protocol_takes_and_gives_json(
    service: RunningService, model: dict[str, str], scores: list[float]
) -> None:
    path = f"/v2/models/{model['name']}/versions/{model['version']}/infer"
    body = a_body(INFER, QUERY, ADS) | {"id": "7", "parameters": {"timeout": 9_000_000}}
    answer = post(service, path, body).json()
    assert answer == {
        "model_name": model["name"],
        "model_version": model["version"],
        "id": "7",
        "outputs": [{"name": "score", "datatype": "FP32", "shape": [3], "data": scores}],
    }
    columns = [
        {**texts_tensor("ad", ADS), "shape": [3, 1], "data": [[ad] for ad in ADS]},
        texts_tensor("query", [QUERY] * 3),
    ]
    (output,) = post(service, path, {"inputs": columns}).json()["outputs"]
    assert (output["shape"], output["data"]) == ([3, 1], scores)


def test_the_open_inference_protocol_takes_and_gives_bytes(
    service: RunningService, scores: list[float]
) -> None:
    tail = b"".join(struct.pack("<I", len(ad)) + ad.encode() for ad in ADS)
    ad = texts_tensor("ad", ADS, parameters={"binary_data_size": len(tail)})
    del ad["data"]
    outputs = [{"name": "score", "parameters": {"binary_data": True}}, {"name": "logit"}]
    head = json.dumps({"inputs": [texts_tensor("query", [QUERY]), ad], "outputs": outputs})
    response = service.client.post(
        path_of(service, INFER),
        content=head.encode() + tail,
        headers={"Inference-Header-Content-Length": str(len(head))},
    )
    size = int(response.headers["Inference-Header-Content-Length"])
    score, logit = json.loads(response.content[:size])["outputs"]
    assert score["parameters"] == {"binary_data_size": 12}
    values = struct.unpack("<3f", response.content[size:])
    assert values == pytest.approx(scores, rel=1e-7)
    assert len(logit["data"]) == 3


def test_the_open_inference_protocol_knows_this_model_alone(
    service: RunningService, model: dict[str, str]
) -> None:
    name, version = model["name"], model["version"]
    for path, status in [
        (f"/v2/models/{name}", 200),
        (f"/v2/models/{name}/ready", 200),
        (f"/v2/models/{name}/versions/{version}", 200),
        (f"/v2/models/{name}/versions/{version}/ready", 200),
        ("/v2", 200),
        ("/v2/health/live", 200),
        ("/v2/health/ready", 200),
        ("/v2/models/other", 404),
        ("/v2/models/other/ready", 404),
        (f"/v2/models/{name}/versions/1", 200),
        (f"/v2/models/{name}/versions/1/ready", 200),
        (f"/v2/models/{name}/versions/2", 404),
        ("/v2/models/stats", 404),
        (f"/v2/models/{name}/config", 404),
    ]:
        response = service.client.get(path)
        assert response.status_code == status, path
        assert status == 200 or isinstance(response.json()["error"], str)
    first = service.client.post(
        f"/v2/models/{name}/versions/1/infer", json=a_body(INFER, "red", ["shoe"])
    )
    assert first.json()["model_version"] == version
    unknown = service.client.post(f"/v2/models/{name}/versions/2/infer", json={})
    assert unknown.status_code == 404
    assert version in unknown.json()["error"]
