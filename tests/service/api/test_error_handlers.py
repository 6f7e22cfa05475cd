from __future__ import annotations

import logging

import httpx
import pytest
from fastapi import FastAPI
from starlette.types import Receive, Scope, Send

from service.api import error_handlers
from service.api.compatible.routes import routing_error
from service.api.error_examples import ERROR_EXAMPLES
from service.api.error_handlers import STATUS_OF


def asked(app: FastAPI) -> httpx.AsyncClient:
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    return httpx.AsyncClient(transport=transport, base_url="http://adrel")


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()
    error_handlers.install(app, routing_error)

    for path in ("/info", "/v1/model"):

        @app.get(path)
        async def broken() -> None:
            raise ZeroDivisionError("secret")

    return app


def test_every_error_has_an_example_for_the_openapi_document() -> None:
    assert {type(example) for example in ERROR_EXAMPLES} == set(STATUS_OF)


@pytest.mark.anyio
async def test_a_fault_of_ours_is_told_in_the_shape_that_the_paths_clients_parse(
    app: FastAPI, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.CRITICAL):
        async with asked(app) as client:
            theirs, own = await client.get("/info"), await client.get("/v1/model")
    assert (theirs.status_code, own.status_code) == (500, 500)
    assert theirs.json()["error_type"] == "Backend"
    assert own.json()["error"]["code"] == "internal_error"
    assert "secret" not in theirs.text + own.text


@pytest.mark.parametrize("path", ["/v2/models/\ud800/x", "/\udcff", "/rerank/\ud800"])
@pytest.mark.anyio
async def test_a_path_that_is_not_unicode_is_unknown_and_not_our_fault(
    app: FastAPI, path: str
) -> None:
    async def with_path(scope: Scope, receive: Receive, send: Send) -> None:
        await app({**scope, "path": path}, receive, send)

    transport = httpx.ASGITransport(with_path, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://adrel") as client:
        response = await client.get("/")
    assert response.status_code == 404
    assert "Not Found" in response.text


@pytest.mark.anyio
async def test_a_path_of_any_length_is_shown_in_part(app: FastAPI) -> None:
    async with asked(app) as client:
        assert len((await client.get("/" + "x" * 5000)).text) < 400
