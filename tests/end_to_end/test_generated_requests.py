"""Requests that are made from the OpenAPI document, valid and not, get the answers it promises.

A short run of what a person runs for longer; `schemathesis run URL/openapi.json` does the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.generation import GenerationMode

from tests.end_to_end.running_service import RunningService, running
from tests.end_to_end.test_hostile_callers import GOOD_BODIES
from tests.examples import examples

WAIT_S = 30
TIME_WAS_SHORT = 504  # a timeout of microseconds is a valid one

Case = schemathesis.Case[Any]

load_all_checks()
PROMISES: list[Any] = CHECKS.get_by_names(
    [
        "status_code_conformance",
        "content_type_conformance",
        "response_schema_conformance",
        "response_headers_conformance",
    ]
)


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", "50000") as started:
        yield started


@pytest.fixture(scope="module")
def requests_of(service: RunningService) -> dict[str, st.SearchStrategy[Case]]:
    """Of each route with a body: requests that fit its schema, and others."""
    model = service.client.get("/v1/model").json()["model"]
    known = {"{model}": model["name"], "{version}": model["version"]}
    document: dict[str, Any] = service.client.get("/openapi.json").json()
    found = {}
    for result in schemathesis.openapi.from_dict(document).get_all_operations():
        operation: Any = result.ok()  # type: ignore[union-attr]  # the document is a valid one
        path = {name[1:-1]: known[name] for name in known if name in operation.path} or None
        if operation.method == "post":
            found[operation.path] = st.one_of(
                *[
                    operation.as_strategy(mode, path_parameters=path)
                    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
                ]
            )
    return found


@pytest.mark.parametrize("path", GOOD_BODIES)
@settings(
    max_examples=examples(8), phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)  # what is large or slow to make is wanted here
@given(data=st.data())
def test_what_the_document_allows_or_not_is_answered_as_it_says(
    service: RunningService,
    requests_of: dict[str, st.SearchStrategy[Case]],
    path: str,
    data: st.DataObject,
) -> None:
    case = data.draw(requests_of[path])
    response = case.call(base_url=service.url, timeout=WAIT_S)
    assert response.status_code < 500 or response.status_code == TIME_WAS_SHORT, response.text
    case.validate_response(response, checks=PROMISES)


def test_nothing_of_this_was_a_fault_of_ours(service: RunningService) -> None:
    assert not [entry for entry in service.log if entry["level"] == "error"]
