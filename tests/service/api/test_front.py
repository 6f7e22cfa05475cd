from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import FastAPI, Request, Response

from service.api import score_route
from service.api.front import Front
from service.errors import NotReady

pytestmark = pytest.mark.anyio


async def call(front: Front, path: str, method: str = "POST") -> tuple[int, bytes]:
    sent: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "path": path, "raw_path": path.encode()}
    scope |= {"method": method, "headers": [], "query_string": b"", "http_version": "1.1"}
    scope |= {"scheme": "http", "root_path": "", "server": None, "client": None}
    await front(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


@pytest.fixture
def app() -> FastAPI:
    app = FastAPI()

    @app.get("/livez")
    async def livez() -> Response:
        return Response("by the framework")

    return app


@pytest.mark.parametrize(("path", "method"), [("/livez", "GET"), ("/livez", "HEAD")])
async def test_other_routes_go_through_the_framework(app: FastAPI, path: str, method: str) -> None:
    assert await call(Front(app), path, method) == (200, b"by the framework")


async def test_the_score_route_does_not(app: FastAPI, monkeypatch: pytest.MonkeyPatch) -> None:
    async def score(request: Request) -> Response:
        assert request.app is app
        return Response("scored")

    monkeypatch.setattr(score_route, "score", score)
    assert await call(Front(app), "/v1/score") == (200, b"scored")
    assert (await call(Front(app), "/v1/score", "GET"))[0] == 404


async def test_our_errors_and_our_faults_are_answered_in_our_shape(
    app: FastAPI, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def not_ready(_: Request) -> Response:
        raise NotReady("still loading")

    async def broken(_: Request) -> Response:
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(score_route, "score", not_ready)
    status, body = await call(Front(app), "/v1/score")
    assert (status, b'"not_ready"' in body) == (503, True)
    monkeypatch.setattr(score_route, "score", broken)
    with caplog.at_level(logging.ERROR):
        status, body = await call(Front(app), "/v1/score")
    assert (status, b'"internal_error"' in body, b"secret" in body) == (500, True, False)
    assert "ZeroDivisionError" in caplog.text
