from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from deploy.loadtest.target import NoTarget, checked_url, key_headers, serving_model


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:8000", "http://localhost:8000", "https://[::1]:8000", "http://127.9.9.9"],
)
def test_this_machine_may_be_put_under_load(url: str) -> None:
    assert checked_url(url + "/", host_is_mine=False) == url


@pytest.mark.parametrize(
    "url",
    [
        "http://adrel.example:8000",
        "http://10.0.0.1",
        "http://localhost.example",
        "http://127.0.0.1.example",
        "http://0.0.0.0:8000",
        "http://127.0.0.1@adrel.example",
    ],
)
def test_another_machine_may_not_unless_it_is_said_to_be_ours(url: str) -> None:
    with pytest.raises(NoTarget, match="--host-is-mine"):
        checked_url(url, host_is_mine=False)
    assert checked_url(url, host_is_mine=True) == url


@pytest.mark.parametrize("url", ["", "127.0.0.1:8000", "ftp://localhost", "http://", "http://[::1"])
def test_what_is_no_url_of_a_service_is_refused(url: str) -> None:
    with pytest.raises(NoTarget, match="is not a URL"):
        checked_url(url, host_is_mine=True)


@pytest.mark.parametrize("port", ["port", "99999"])
def test_a_wrong_port_is_refused(port: str) -> None:
    with pytest.raises(NoTarget, match="is not a URL"):
        checked_url(f"http://127.0.0.1:{port}", host_is_mine=True)


@pytest.mark.parametrize("path", ["/v1/score", "/x/", "?a=1", "#a"])
def test_a_url_with_a_path_is_refused(path: str) -> None:
    with pytest.raises(NoTarget, match="more than scheme, host and port"):
        checked_url(f"http://127.0.0.1:8000{path}", host_is_mine=True)


@contextmanager
def answering(status: int, body: bytes, keys: list[str | None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # http.server's name
            keys.append(self.headers["Authorization"])
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_serving_model_is_told_by_the_service() -> None:
    body = json.dumps({"serving": {"name": "m", "version": "1", "bundle": "b"}}).encode()
    keys: list[str | None] = []
    with answering(200, body, keys) as url:
        assert serving_model(url, "a key") == {"name": "m", "version": "1"}
        serving_model(url, None)
    assert keys == ["Bearer a key", None]


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (401, b"{}", "401"),
        (200, b"{}", "not an answer of adrel"),
        (200, b"<html>", "not an answer"),
    ],
)
def test_a_service_that_is_none_is_no_target(status: int, body: bytes, told: str) -> None:
    with answering(status, body, []) as url, pytest.raises(NoTarget, match=told):
        serving_model(url, None)


@pytest.mark.parametrize(
    ("key", "told"), [(None, "wants a key, in the variable"), ("k", "does not know the key in")]
)
def test_a_key_that_is_absent_or_wrong_is_told_with_its_variable(
    key: str | None, told: str
) -> None:
    with (
        answering(401, b"{}", []) as url,
        pytest.raises(NoTarget, match=f"{told} LOADTEST_API_KEY") as refused,
    ):
        serving_model(url, key)
    assert "401" in str(refused.value)


def test_a_port_where_nobody_listens_is_no_target() -> None:
    with pytest.raises(NoTarget, match="refused"):
        serving_model("http://127.0.0.1:1", None)


def test_without_a_key_there_is_no_header() -> None:
    assert key_headers(None) == key_headers("") == {}
