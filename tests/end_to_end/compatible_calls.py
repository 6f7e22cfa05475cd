"""What other servers' protocols are asked with in the tests, and where they say why not."""

from __future__ import annotations

from typing import Any

import httpx

from tests.end_to_end.running_service import RunningService

QUERY = "cheap red shoe"
ADS = ["cheap bag", "red shoe, buy best", "lamp"]

INFER = "/v2/models/{model}/infer"
POSTED = ("/rerank", "/predict", "/v1/rerank", "/v2/rerank", "/score", "/v1/score", INFER)


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
