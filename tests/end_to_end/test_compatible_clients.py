"""Clients of other servers, as their makers publish them, against a running service."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import cohere
import httpx
import numpy as np
import pytest
import tritonclient.http
from cohere.errors import BadRequestError, GatewayTimeoutError
from tritonclient.utils import InferenceServerException

from tests.end_to_end.running_service import RunningService, running

QUERY = "cheap red shoe"
ADS = ["cheap bag", "red shoe, buy best", "lamp"]


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8) as started:
        yield started


@pytest.fixture(scope="module")
def scores(service: RunningService) -> list[float]:
    """Of each ad, by our own API."""
    body = {"query": QUERY, "ads": [{"id": ad, "text": ad} for ad in ADS]}
    return [ad["score"] for ad in service.score(body).json()["scores"]]


@pytest.fixture
def connection() -> Iterator[httpx.Client]:
    """Closed after the test, which Cohere's client would leave to chance."""
    with httpx.Client() as client:
        yield client


@pytest.fixture
def triton(service: RunningService) -> Iterator[tritonclient.http.InferenceServerClient]:
    url = service.url.removeprefix("http://")
    with tritonclient.http.InferenceServerClient(url) as client:
        yield client


@pytest.fixture(scope="module")
def model(service: RunningService) -> dict[str, str]:
    identity: dict[str, str] = service.client.get("/v1/model").json()["model"]
    return identity


def by_rank(scores: list[float]) -> list[tuple[int, float]]:
    return sorted(enumerate(scores), key=lambda entry: -entry[1])


def test_coheres_client_gets_our_scores(
    service: RunningService, connection: httpx.Client, scores: list[float]
) -> None:
    client = cohere.ClientV2(api_key="none", base_url=service.url, httpx_client=connection)
    answer = client.rerank(model="rerank-v3.5", query=QUERY, documents=ADS)
    assert [(one.index, one.relevance_score) for one in answer.results] == by_rank(scores)
    assert answer.meta is not None
    assert answer.meta.api_version is not None
    assert answer.meta.api_version.version == "2"
    best = client.rerank(model="any", query=QUERY, documents=ADS, top_n=1, max_tokens_per_doc=512)
    assert [one.index for one in best.results] == [by_rank(scores)[0][0]]
    assert best.meta is not None
    assert best.meta.warnings is not None
    assert "max_tokens_per_doc" in best.meta.warnings[0]


def test_coheres_first_client_gets_our_scores_and_its_documents(
    service: RunningService, connection: httpx.Client, scores: list[float]
) -> None:
    client = cohere.Client(api_key="none", base_url=service.url, httpx_client=connection)
    answer = client.rerank(
        model="rerank-english-v3.0",
        query=QUERY,
        documents=[{"title": ad.split()[0], "rest": " ".join(ad.split()[1:])} for ad in ADS],
        rank_fields=["title", "rest"],
        return_documents=True,
    )
    expected = by_rank(scores)
    assert [one.index for one in answer.results] == [index for index, _ in expected]
    assert answer.results[0].relevance_score == expected[0][1]
    document = answer.results[0].document
    assert document is not None
    assert f"{document.title} {document.rest}" == ADS[expected[0][0]]  # type: ignore[attr-defined]  # as sent


def test_coheres_client_reads_our_errors(service: RunningService, connection: httpx.Client) -> None:
    client = cohere.ClientV2(api_key="none", base_url=service.url, httpx_client=connection)
    with pytest.raises(BadRequestError) as caught:
        client.rerank(model="any", query=QUERY, documents=[])
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["message"] == "documents: must not be empty"
    with pytest.raises(GatewayTimeoutError):
        client.rerank(
            model="any",
            query="never asked before",
            documents=ADS,
            request_options={
                "additional_headers": {"X-Request-Timeout-Ms": "0.001"},
                "max_retries": 0,
            },
        )


@pytest.mark.parametrize("binary_in", [True, False])
@pytest.mark.parametrize("binary_out", [True, False, None])
@pytest.mark.parametrize("shape", [(3,), (3, 1)])
def test_tritons_client_gets_our_scores(
    triton: tritonclient.http.InferenceServerClient,
    model: dict[str, str],
    scores: list[float],
    binary_in: bool,
    binary_out: bool | None,
    shape: tuple[int, ...],
) -> None:
    query = tritonclient.http.InferInput("query", [1], "BYTES")
    query.set_data_from_numpy(np.array([QUERY], object), binary_data=binary_in)
    ad = tritonclient.http.InferInput("ad", list(shape), "BYTES")
    ad.set_data_from_numpy(np.array(ADS, object).reshape(shape), binary_data=binary_in)
    wanted = None
    if binary_out is not None:
        wanted = [tritonclient.http.InferRequestedOutput("score", binary_data=binary_out)]
    answer = triton.infer(
        model["name"],
        [query, ad],
        model_version=model["version"],
        outputs=wanted,
        request_id="auction-7",
        priority=2,
        timeout=20_000_000,
    )
    score = answer.as_numpy("score")
    assert score.dtype == np.float32
    assert score.shape == shape
    np.testing.assert_array_equal(score.ravel(), np.array(scores, np.float32))
    assert answer.get_response()["id"] == "auction-7"
    assert answer.get_response()["model_version"] == model["version"]


def test_tritons_client_finds_the_server_and_the_model_ready(
    triton: tritonclient.http.InferenceServerClient, model: dict[str, str]
) -> None:
    assert triton.is_server_live()
    assert triton.is_server_ready()
    assert triton.is_model_ready(model["name"], model["version"])
    assert not triton.is_model_ready("another")
    assert triton.is_model_ready(model["name"], "1")
    assert not triton.is_model_ready(model["name"], "2")
    assert "binary_tensor_data" in triton.get_server_metadata()["extensions"]
    metadata = triton.get_model_metadata(model["name"])
    assert metadata["versions"] == [model["version"]]
    assert [tensor["name"] for tensor in metadata["inputs"]] == ["query", "ad"]


def test_tritons_client_reads_our_errors(
    triton: tritonclient.http.InferenceServerClient, model: dict[str, str]
) -> None:
    ad = tritonclient.http.InferInput("ad", [1], "BYTES")
    ad.set_data_from_numpy(np.array(["x"], object))
    with pytest.raises(InferenceServerException, match="needs a tensor query") as caught:
        triton.infer(model["name"], [ad])
    assert caught.value.status() == "400"
    with pytest.raises(InferenceServerException, match="unknown model 'another'") as caught:
        triton.infer("another", [ad])
    assert caught.value.status() == "404"
    with pytest.raises(InferenceServerException, match="there are no statistics here"):
        triton.get_inference_statistics()
    with pytest.raises(InferenceServerException, match="Not Found"):
        triton.get_model_config(model["name"])
