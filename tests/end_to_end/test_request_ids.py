"""An answer of any kind carries the id that the log has of its request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.end_to_end.compatible_calls import INFER, POSTED, a_body, path_of
from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_serving import ads
from tests.waiting import until

DEADLINE_S = 30
NATIVE = "native /v1/score"
EXPLAIN = "/v1/explain"
PATHS = (*POSTED, NATIVE, EXPLAIN)
WITH_AN_ID = ("/score", "/v1/score", "/rerank", "/v1/rerank", "/v2/rerank", INFER, NATIVE, EXPLAIN)


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    arguments = ("--log-requests", "--max-body-bytes", "50000")
    with running(tiny_bundle_int8, *arguments) as started:
        yield started


def body_of(path: str, query: str) -> dict[str, Any]:
    if path == NATIVE:
        return {"query": query, "ads": ads("shoe")}
    if path == EXPLAIN:
        return {"query": query, "ad": {"text": "shoe"}}
    return a_body(path, query, ["shoe"])


def ask(service: RunningService, path: str, body: dict[str, Any], **headers: str) -> httpx.Response:
    where = path_of(service, path.removeprefix("native "))
    content = json.dumps(body)
    headers = {"content-type": "application/json", **headers}
    return service.client.post(where, content=content, headers=headers)


def assert_logged(service: RunningService, response: httpx.Response) -> str:
    """The answer's id, once a line of the log has it."""
    wanted = response.headers["X-Request-Id"]
    until(
        lambda: any(line.get("request_id") == wanted for line in list(service.log)),
        f"no line has {wanted}",
    )
    return str(wanted)


@pytest.mark.parametrize("path", WITH_AN_ID)
def test_the_bodys_id_wins_on_every_answer(service: RunningService, path: str) -> None:
    name = "id" if path == INFER else "request_id"
    headers = {"X-Request-Id": "of-the-header"}
    kinds = {
        "good": (body_of(path, "red"), {}),
        "late": (body_of(path, f"unseen {path}"), {"X-Request-Timeout-Ms": "0.001"}),
        "wrong timeout": (body_of(path, "red"), {"X-Request-Timeout-Ms": "soon"}),
        "blank": (body_of(path, " "), {}),
        "faulty": ({**body_of(path, "red"), "query": 7, "inputs": 7, "text_1": 7}, {}),
    }
    for kind, (body, more) in kinds.items():
        own = f"{kind}-{PATHS.index(path)}".replace(" ", "-")
        response = ask(service, path, {**body, name: own}, **headers, **more)
        assert (response.status_code == 200) == (kind == "good"), response.text
        assert assert_logged(service, response) == own, kind


@pytest.mark.parametrize("path", PATHS)
def test_else_the_headers_and_else_one_is_made_up(service: RunningService, path: str) -> None:
    body = body_of(path, " ")
    proper = ask(service, path, body, **{"X-Request-Id": f"header-{PATHS.index(path)}"})
    assert assert_logged(service, proper) == f"header-{PATHS.index(path)}"
    improper = ask(service, path, body, **{"X-Request-Id": "two words"})
    none = ask(service, path, body)
    made_up = {assert_logged(service, improper), assert_logged(service, none)}
    assert len(made_up) == 2
    assert "two words" not in made_up


@pytest.mark.parametrize("path", PATHS)
def test_bodies_that_are_not_read_have_an_id_too(service: RunningService, path: str) -> None:
    packed = ask(service, path, {}, **{"content-encoding": "gzip"})
    large = ask(service, path, {"query": "x" * 50_001})
    assert (packed.status_code, large.status_code) == (415, 413)
    assert assert_logged(service, packed) != assert_logged(service, large)


@pytest.mark.parametrize("path", ["/no/such/path", "/rerank/no", "/v2/models/other"])
def test_what_is_not_there_is_told_with_an_id(service: RunningService, path: str) -> None:
    given = service.client.get(path, headers={"X-Request-Id": "auction-5"})
    assert (given.status_code, given.headers["X-Request-Id"]) == (404, "auction-5")
    assert service.client.get(path).headers["X-Request-Id"]
