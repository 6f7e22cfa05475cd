from __future__ import annotations

import pytest

from service.api.compatible.routes import routing_error


@pytest.mark.parametrize("path", ["/v2", "/v2/", "/v2/models", "/v2/repository/index", "/v2/foo"])
def test_an_unknown_open_inference_path_has_a_string_for_an_error(path: str) -> None:
    assert routing_error(path, 404, "not there") == {"error": "not there"}


def test_each_protocol_has_its_own_shape() -> None:
    for path in ("/rerank", "/predict", "/info", "/health"):
        tei = routing_error(path, 405, "no")
        assert tei == {"error": "no", "error_type": "Validation"}
    fault = routing_error("/info", 500, "no")
    assert fault == {"error": "no", "error_type": "Backend"}
    cohere = routing_error("/v2/rerank/", 404, "no")
    assert cohere is not None
    assert cohere["message"] == "no"
    vllm = routing_error("/score", 405, "no")
    assert vllm is not None
    assert vllm["error"]["message"] == "no"


@pytest.mark.parametrize("path", ["/", "/v1/score", "/v1/model", "/v22", "/reranker", "/metrics"])
def test_our_own_paths_keep_our_shape(path: str) -> None:
    assert routing_error(path, 404, "no") is None
