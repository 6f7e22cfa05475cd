from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fastapi import Request, Response
from starlette.types import Receive, Scope, Send

from service.api.key_guard import KeyGuard, shown_keys
from service.api.keys import ApiKeys
from service.errors import Unauthorized

KEY = "some-key-0123456789"


@pytest.mark.parametrize(
    ("headers", "keys"),
    [
        ([], []),
        ([(b"authorization", b"Bearer abc")], [b"abc"]),
        ([(b"authorization", b"bearer  abc ")], [b"abc"]),
        ([(b"authorization", b"Basic abc")], []),
        ([(b"authorization", b"abc")], []),
        ([(b"authorization", b"Bearer ")], []),
        ([(b"x-api-key", b" abc")], [b"abc"]),
        ([(b"x-api-key", b"")], []),
        ([(b"x-api-key", b"own"), (b"authorization", b"Bearer abc")], [b"abc", b"own"]),
        ([(b"authorization", b"Basic cHJveHk="), (b"x-api-key", b"own")], [b"own"]),
        ([(b"x-api-key", b"first"), (b"x-api-key", b"second")], [b"first"]),
        ([(b"authorization", b"Bearer first"), (b"authorization", b"Bearer second")], [b"first"]),
    ],
)
def test_the_keys_that_a_request_shows(
    headers: list[tuple[bytes, bytes]], keys: list[bytes]
) -> None:
    assert shown_keys(headers) == keys


async def call(
    path: str, kind: str = "http", key: bytes | None = None
) -> tuple[list[Mapping[str, Any]], list[Unauthorized]]:
    sent: list[Mapping[str, Any]] = []
    refused: list[Unauthorized] = []

    async def app(_: Scope, __: Receive, send: Send) -> None:
        await send({"type": "passed"})

    def refuse(_: Request, error: Unauthorized) -> Response:
        refused.append(error)
        return Response("no", 401)

    async def receive() -> Mapping[str, Any]:
        raise AssertionError("the body was read")

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    guard = KeyGuard(app, ApiKeys(KEY, None), frozenset({"/livez"}), refuse)
    headers = [(b"x-api-key", key)] if key is not None else []
    scope: dict[str, Any] = {"type": kind, "path": path, "headers": headers}
    await guard(scope, receive, send)  # type: ignore[arg-type]  # mappings are what is sent
    return sent, refused


@pytest.mark.anyio
@pytest.mark.parametrize(
    "path", ["/v1/score", "/metrics", "/docs", "/livez/", "/", "/no/such/path"]
)
async def test_every_path_that_is_not_named_is_closed_and_nothing_is_read(path: str) -> None:
    sent, (error,) = await call(path)
    assert sent[0]["status"] == 401
    assert not error.has_key
    sent, (error,) = await call(path, key=b"another-key-0123456789")
    assert sent[0]["status"] == 401
    assert error.has_key
    sent, refused = await call(path, key=KEY.encode())
    assert (sent, refused) == ([{"type": "passed"}], [])


@pytest.mark.anyio
async def test_open_paths_and_the_lifespan_need_no_key() -> None:
    assert await call("/livez") == ([{"type": "passed"}], [])
    assert await call("", kind="lifespan") == ([{"type": "passed"}], [])


@pytest.mark.anyio
async def test_another_protocol_is_no_way_round() -> None:
    with pytest.raises(AssertionError):  # none is served, so none has an answer of its own
        await call("/v1/score", kind="websocket")
