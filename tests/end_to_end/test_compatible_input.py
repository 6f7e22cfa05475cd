"""What other servers' protocols allow and refuse, on every route of theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.end_to_end.compatible_calls import (
    INFER,
    POSTED,
    a_body,
    message_of,
    path_of,
    post,
    texts_tensor,
)
from tests.end_to_end.running_service import RunningService, running
from tests.examples import examples


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", "50000") as started:
        yield started


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


@settings(max_examples=examples(75), suppress_health_check=[HealthCheck.function_scoped_fixture])
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
