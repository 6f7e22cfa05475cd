"""Other servers' protocols, by plain HTTP as their documentation has it."""

from __future__ import annotations

import json
import math
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.running_service import RunningService, running

QUERY = "cheap red shoe"
ADS = ["cheap bag", "red shoe, buy best", "lamp"]

INFER = "/v2/models/{model}/infer"
POSTED = ("/rerank", "/predict", "/v1/rerank", "/v2/rerank", "/score", "/v1/score", INFER)


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


def native(service: RunningService, query: str, texts: list[str]) -> list[float]:
    ads = [{"id": str(number), "text": text} for number, text in enumerate(texts)]
    answer = service.score({"query": query, "ads": ads})
    return [ad["score"] for ad in answer.json()["scores"]]


def post(service: RunningService, path: str, body: object, **options: Any) -> httpx.Response:  # noqa: ANN401  # httpx's own
    return service.client.post(path_of(service, path), json=body, **options)


def path_of(service: RunningService, template: str) -> str:
    if "{" not in template:
        return template
    return template.format(model=service.client.get("/v1/model").json()["model"]["name"])


def best_first(values: list[float]) -> list[int]:
    return sorted(range(len(values)), key=lambda index: -values[index])


def texts_tensor(name: str, texts: list[str], **fields: object) -> dict[str, object]:
    tensor = {"name": name, "shape": [len(texts)], "datatype": "BYTES", "data": texts}
    return {**tensor, **fields}


def a_body(path: str, query: str, texts: list[str]) -> dict[str, Any]:
    """What asks for the texts' scores there."""
    bodies: dict[str, dict[str, Any]] = {
        "/rerank": {"query": query, "texts": texts},
        "/predict": {"inputs": [[query, text] for text in texts]},
        "/score": {"text_1": query, "text_2": texts},
        "/v1/score": {"text_1": query, "text_2": texts},
        INFER: {"inputs": [texts_tensor("query", [query]), texts_tensor("ad", texts)]},
    }
    return bodies.get(path, {"model": "any", "query": query, "documents": texts})


def message_of(path: str, body: Any) -> str:  # noqa: ANN401  # any JSON
    """Where the protocol's clients look for the reason."""
    if path in ("/rerank", "/predict"):
        assert body["error_type"] in ("Validation", "Empty", "Overloaded", "Unhealthy", "Backend")
        return str(body["error"])
    if path in ("/score", "/v1/score"):
        assert body["error"].keys() == {"message", "type", "param", "code"}
        return str(body["error"]["message"])
    if path == INFER:
        return str(body["error"])
    assert body["message"] == body["detail"] == body["error"]["message"]
    return str(body["message"])


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
    assert info["max_batch_requests"] == 8
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


@pytest.mark.parametrize("path", POSTED)
def test_a_timeout_over_the_limit_is_cut_to_it(service: RunningService, path: str) -> None:
    long = {"X-Request-Timeout-Ms": "99999999999"}
    assert post(service, path, a_body(path, "red", ["shoe"]), headers=long).status_code == 200
    bad = post(
        service, path, a_body(path, "red", ["shoe"]), headers={"X-Request-Timeout-Ms": "1e3"}
    )
    assert "such as 250 or 12.5, up to 60000; got '1e3'" in message_of(path, bad.json())


def test_tritons_timeout_over_the_limit_is_cut_to_it(tiny_bundle_int8: Path) -> None:
    limits = ("--max-timeout-ms", "0.001", "--default-timeout-ms", "0.001")
    with running(tiny_bundle_int8, *limits) as hasty:
        body = a_body(INFER, "red", ["shoe"]) | {"parameters": {"timeout": 61_000_000}}
        late = post(hasty, INFER, body)
    assert (late.status_code, "within 0.001 ms" in late.json()["error"]) == (504, True)


@pytest.mark.parametrize(
    ("fields", "has_code"),
    [
        ({}, False),
        ({"truncate": True, "raw_scores": False}, False),
        ({"model": "m"}, True),
        ({"top_n": 3}, True),
        ({"return_documents": True}, True),
        ({"model": "m", "texts": 7}, False),
        ({"truncate": True, "documents": 7}, True),
    ],
)
def test_a_body_without_texts_is_refused_in_the_shape_of_whose_fields_there_are(
    service: RunningService, fields: dict[str, object], has_code: bool
) -> None:
    response = post(service, "/rerank", {"query": "q", **fields})
    assert response.status_code == (400 if has_code else 422)
    assert isinstance(response.json()["error"], dict) == has_code


@pytest.mark.parametrize("path", POSTED)
def test_the_limits_of_our_own_api_hold(service: RunningService, path: str) -> None:
    too_many = post(service, path, a_body(path, "q", ["x"] * 1001))
    assert too_many.status_code == (413 if path in ("/rerank", "/predict") else 400)
    assert "got 1001, the limit is 1000" in message_of(path, too_many.json())
    late = post(
        service,
        path,
        a_body(path, "in no time", ["shoe " * 20]),
        headers={"X-Request-Timeout-Ms": "0.001", "X-Request-Id": "auction-9"},
    )
    assert late.status_code == 504
    assert "none of 1 ads had a score within 0.001 ms" in message_of(path, late.json())
    assert late.headers["X-Request-Id"] == "auction-9"
    nothing = post(service, path, a_body(path, "q", []))
    assert nothing.status_code == 400
    assert "must not be empty" in message_of(path, nothing.json())
    blank = post(service, path, a_body(path, " ", ["x"]))
    assert blank.status_code == (422 if path in ("/rerank", "/predict") else 400)
    assert "only white space" in message_of(path, blank.json())
    empty_text = post(service, path, a_body(path, "red", ["", "shoe"]))
    assert empty_text.status_code == 200


@pytest.mark.parametrize("path", [path for path in POSTED if path != "/v1/score"])
def test_bodies_that_cannot_be_read_are_refused_in_the_clients_shape(
    service: RunningService, path: str
) -> None:
    where = path_of(service, path)
    long = service.client.post(where, json=a_body(path, "q", ["x" * 50_001]))
    assert long.status_code == 413
    assert "over the limit of 50000 bytes" in message_of(path, long.json())
    for content in (b"", b"{", b"[1]", b"7", b'"\\ud800"', b"\xff", b"[" * 9000, b'{"a": NaN}'):
        broken = service.client.post(
            where, content=content, headers={"content-type": "application/json"}
        )
        assert broken.status_code == (422 if path in ("/rerank", "/predict") else 400), content
        assert message_of(path, broken.json()).startswith("body: ")
    untyped = service.client.post(where, content=json.dumps(a_body(path, "q", ["x"])))
    assert untyped.status_code == (200 if path == INFER else 415)
    json_type = {"content-type": "application/json"}
    packed = service.client.post(
        where, content=b"x", headers={**json_type, "content-encoding": "gzip"}
    )
    assert packed.status_code == 415
    assert message_of(path, packed.json()).startswith("Content-Encoding gzip is not read")
    half = service.client.post(where, content=b'{"query": "\\ud800"}', headers=json_type)
    assert "half of a surrogate pair" in message_of(path, half.json())


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/rerank", {"query": "q"}, "texts: Field required"),
        ("/rerank", {"texts": ["x"]}, "query: Field required"),
        ("/rerank", {"query": "q", "texts": ["x", 7]}, "texts[1]: Input should be a valid string"),
        ("/rerank", {"query": "q", "texts": ["x"], "truncation_direction": "Left"}, "'Right'"),
        ("/predict", {"inputs": "q"}, "inputs: a text alone"),
        ("/predict", {"inputs": [["q", "x"], ["q"]]}, "inputs[1]: must be a pair"),
        ("/predict", {"inputs": ["q", "x", "y"]}, "inputs: must be a pair"),
        ("/predict", {"inputs": [["q", "x"], "y"]}, "inputs[1]: must be a pair"),
        ("/predict", {"inputs": ["y", ["q", "x"]]}, "inputs[0]: must be a pair"),
        ("/predict", {"inputs": [[" ", "x"]]}, "inputs[0][0]: must not be empty"),
        ("/predict", {"inputs": [["q", "x"], [" ", "x"]]}, "inputs[1][0]: must not be empty"),
        ("/predict", {"inputs": [" ", "x"]}, "inputs[0]: must not be empty"),
        ("/predict", {"inputs": [["q", "x"], ["q", "y", "z"]]}, "inputs[1]: must be a pair"),
        ("/v1/rerank", {"query": "q", "documents": ["x"], "top_n": -1}, "top_n: Input should be"),
        ("/v1/rerank", {"query": "q", "documents": ["x"], "model": ""}, "model: String should"),
        ("/v1/rerank", {"query": "q", "documents": "x"}, "documents: Input should be a valid list"),
        ("/v1/rerank", {"query": "q", "documents": ["x", 7]}, "documents[1]: must be a string or"),
        ("/v1/rerank", {"query": "q", "documents": [{"image": "x"}]}, "documents[0]: must have t"),
        ("/v2/rerank", {"query": "q", "documents": [{"c": "x", "a": True, "b": None}],
                        "rank_fields": ["a", "b"]}, "documents[0]: must have a or b"),
        ("/score", {}, "text_1: Field required"),
        ("/score", {"text_1": "q", "queries": "q", "text_2": "x"}, "text_1 and queries are names"),
        ("/v1/score", {"queries": "q", "items": "x", "documents": "x"}, "documents and items are"),
        ("/rerank", {"query": "q", "texts": ["x"], "documents": ["x"]}, "texts and documents are"),
        ("/score", {"queries": "q"}, "documents: Field required"),
        ("/score", {"text_1": ["q", "r"], "text_2": ["x"]}, "text_1: must be one or as many"),
        ("/score", {"text_1": ["q", " "], "text_2": ["x", "y"]}, "text_1[1]: must not be empty"),
        ("/score", {"text_1": "q", "text_2": [{"content": []}]}, "text_2[0]: Input should be"),
        ("/score", {"text_1": "q", "text_2": "x", "truncate_prompt_tokens": 5}, "read up to 64"),
        ("/v1/score", {"text_1": "q"}, "text_2: Field required"),
        ("/v1/score", {"text_2": "x", "model": "m"}, "text_1: Field required"),
        ("/v1/score", {"documents": ["x"]}, "queries: Field required"),
        (INFER, {}, "inputs: Field required"),
        (INFER, {"inputs": [texts_tensor("ad", ["x"])]}, "inputs: needs a tensor query"),
        (INFER, {"inputs": [texts_tensor("ad", ["x"])] * 2}, "ad: is given twice"),
        (INFER, {"inputs": [texts_tensor("ad", ["x"], datatype="FP32")]}, "datatype must be BYTES"),
        (INFER, {"inputs": [texts_tensor("ad", ["x"], shape=[2])]}, "shape does not fit"),
        (INFER, {"inputs": [texts_tensor("ad", ["x"], shape=[1, 2])]}, "must be [n] or [n, 1]"),
        (INFER, {"inputs": [texts_tensor("query", ["q", "r"]), texts_tensor("ad", ["x"] * 3)]},
         "query: must have 1 row or 3"),
        (INFER, a_body(INFER, "q", ["x"]) | {"outputs": [{"name": "other"}]}, "no 'other'"),
        (INFER, a_body(INFER, "q", ["x"]) | {"parameters": {"timeout": "soon"}},
         "parameters.timeout: must be a number"),
    ],
)  # fmt: skip
def test_bad_input_is_refused_with_the_field(
    service: RunningService, path: str, body: object, message: str
) -> None:
    pairs_before = service.metric("adrel_batch_pairs_sum")
    response = post(service, path, body)
    assert response.status_code == (422 if path in ("/rerank", "/predict") else 400)
    assert message in message_of(path, response.json())
    assert service.metric("adrel_batch_pairs_sum") == pairs_before


@pytest.mark.parametrize(
    ("path", "field"),
    [
        ("/rerank", "texts"),
        ("/predict", "inputs"),
        ("/v1/rerank", "documents"),
        ("/v1/rerank", "rank_fields"),
        ("/score", "text_1"),
        (INFER, "inputs"),
        (INFER, "outputs"),
    ],
)
def test_thousands_of_faults_are_refused_as_quickly_as_one(
    service: RunningService, path: str, field: str
) -> None:
    faults = {**a_body(path, "q", ["x"]), field: [0] * 12_000}
    message = message_of(path, post(service, path, faults).json())
    assert "more)" not in message
    assert field in message


def test_our_own_bodies_stay_strict_where_vllms_are_let_in(service: RunningService) -> None:
    own = service.score({"query": "q", "ads": [], "text_1": "x"})
    assert own.status_code == 422
    assert own.json()["error"]["code"] == "invalid_request"


def test_each_route_is_counted_under_its_own_name(service: RunningService) -> None:
    for path in POSTED:
        sample = f'adrel_requests_total{{outcome="ok",route="{path}"}}'
        refused = f'adrel_requests_total{{outcome="invalid_request",route="{path}"}}'
        before = service.metric(sample), service.metric(refused)
        post(service, path, a_body(path, "red", ["shoe"]))
        post(service, path, a_body(path, "red", []))
        assert service.metric(sample) == before[0] + 1
        assert service.metric(refused) == before[1] + 1
    pairs = service.metric('adrel_pairs_total{status="cached"}')
    post(service, "/rerank", a_body("/rerank", "red", ["shoe"]))
    assert service.metric('adrel_pairs_total{status="cached"}') == pairs + 1


@pytest.mark.parametrize("path", POSTED)
def test_answers_and_errors_are_what_the_openapi_document_promises(
    service: RunningService, path: str
) -> None:
    document = service.client.get("/openapi.json").json()
    operation = document["paths"][path]["post"]
    components = {"components": document["components"]}
    wanted = operation["requestBody"]["content"]["application/json"]["schema"]
    for texts in (["shoe"], []):
        body = a_body(path, "red", texts)
        response = post(service, path, body)
        promised = operation["responses"][str(response.status_code)]["content"]
        jsonschema.validate(
            response.json(), {**promised["application/json"]["schema"], **components}
        )
        if texts:
            jsonschema.validate(body, {**wanted, **components})
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"query": "red"}, {**wanted, **components})
    jsonschema.validate(
        service.client.get("/info").json(),
        {**document["paths"]["/info"]["get"]["responses"]["200"]["content"]["application/json"][
            "schema"], **components},
    )  # fmt: skip


NAMES = """
    query texts documents inputs text_1 text_2 queries items data_1 data_2 top_n model priority
    rank_fields raw_scores return_documents return_text truncate outputs parameters id name shape
    datatype data timeout binary_data_size text max_tokens_per_doc request_id
"""
FIELDS = st.sampled_from(NAMES.split())
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**25), 10**25)
    | st.floats()
    | st.sampled_from(["red shoe", "", "BYTES", "score", "ad", "query"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner, max_size=6),
    max_leaves=12,
)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    path=st.sampled_from(POSTED),
    fields=st.dictionaries(FIELDS, VALUES, max_size=6),
    as_documented=st.booleans(),
    header=st.none() | st.sampled_from(["0", "5", "-1", "x", "99999", "1" * 30]),
    timeout=st.none() | st.sampled_from(["5000", "0", "1e3", "99999999999", "1" * 300]),
    changes=st.just([]) | st.lists(st.tuples(st.integers(0, 999), st.integers(0, 255)), max_size=3),
    kept=st.none() | st.integers(0, 99),
)
def test_no_input_is_our_fault(
    service: RunningService,
    path: str,
    fields: dict[str, Any],
    as_documented: bool,
    header: str | None,
    timeout: str | None,
    changes: list[tuple[int, int]],
    kept: int | None,
) -> None:
    body = {**a_body(path, "red", ["shoe"]), **fields} if as_documented else fields
    headers = {"content-type": "application/json"}
    if header is not None:
        headers["Inference-Header-Content-Length"] = header
    if timeout is not None:
        headers["X-Request-Timeout-Ms"] = timeout
    content = bytearray(json.dumps(body).encode())[:kept]
    for place, byte in changes:
        start = place % (len(content) + 1)
        content[start : start + 1] = bytes([byte])
    response = service.client.post(path_of(service, path), content=bytes(content), headers=headers)
    assert response.status_code < 500, content
