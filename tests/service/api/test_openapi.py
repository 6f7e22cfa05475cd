from __future__ import annotations

import asyncio
import threading
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from service.api import openapi
from service.api.state import RequestLimits

pytestmark = pytest.mark.anyio


async def test_the_document_is_made_once_and_beside_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = FastAPI(openapi_url=None)
    made_in: list[threading.Thread] = []

    def generate() -> dict[str, Any]:
        made_in.append(threading.current_thread())
        return {"components": {"schemas": {}}, "paths": {}}

    monkeypatch.setattr(app, "openapi", generate)
    openapi.install(app, RequestLimits(1, 1, 1, 1, 1), [])
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://adrel") as client:
        answers = await asyncio.gather(*(client.get("/openapi.json") for _ in range(3)))
        page = await client.get("/docs")
    assert {answer.status_code for answer in answers} == {200}
    assert answers[0].json()["components"]["schemas"]["ScoreRequest"]
    assert len(made_in) == 1
    assert made_in[0] is not threading.current_thread()
    assert "'openapi.json'" in page.text
