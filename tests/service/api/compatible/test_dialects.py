from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi import Request

from service.api.compatible.dialects import (
    COHERE_JINA,
    OPEN_INFERENCE,
    OPENAI,
    TEI,
    Dialect,
    NothingToScore,
    TextTooLong,
    UnknownModel,
)
from service.api.error_handlers import STATUS_OF
from service.errors import (
    DeadlineExceeded,
    InferenceFailed,
    InvalidRequest,
    NotReady,
    QueueFull,
    ServiceError,
    TooManyAds,
)

ERRORS: dict[str, ServiceError] = {
    "invalid": InvalidRequest("top_n: wrong", [{"field": "top_n", "problem": "wrong"}]),
    "nothing": NothingToScore("documents"),
    "too long": TextTooLong("texts[0]: does not fit"),
    "unknown": UnknownModel("unknown model 'x'"),
    "too many": TooManyAds(9, 8, "documents"),
    "full": QueueFull(wait_s=2, limit_s=1, retry_after_s=1.2),
    "draining": NotReady("draining"),
    "late": DeadlineExceeded(0.03, 9, 4),
    "failed": InferenceFailed(),
    "ours": ServiceError("internal error"),
}


def answered(dialect: Dialect, error: ServiceError) -> tuple[int, Any, dict[str, str]]:
    scope = {"type": "http", "headers": [(b"x-request-id", b"auction-7")]}
    response = dialect.error_response(Request(scope), error)
    return response.status_code, json.loads(bytes(response.body)), dict(response.headers)


@pytest.mark.parametrize(
    ("dialect", "statuses"),
    [
        (TEI, [422, 400, 413, 422, 413, 429, 503, 504, 424, 500]),
        (OPENAI, [400, 400, 400, 400, 400, 429, 503, 504, 500, 500]),
        (COHERE_JINA, [400, 400, 400, 400, 400, 429, 503, 504, 500, 500]),
        (OPEN_INFERENCE, [400, 400, 400, 404, 400, 429, 503, 504, 500, 500]),
    ],
)
def test_each_error_has_the_status_that_the_clients_know(
    dialect: Dialect, statuses: list[int]
) -> None:
    assert [answered(dialect, error)[0] for error in ERRORS.values()] == statuses


@pytest.mark.parametrize("name", ERRORS)
@pytest.mark.parametrize("dialect", [TEI, OPENAI, COHERE_JINA, OPEN_INFERENCE])
def test_each_error_has_a_documented_body_with_its_message(dialect: Dialect, name: str) -> None:
    status, body, headers = answered(dialect, ERRORS[name])
    assert dialect.schema.model_validate(body).model_dump() == body
    assert ERRORS[name].message in str(body)
    assert status in dialect.documented_errors()
    assert headers["x-request-id"] == "auction-7"


def test_a_refused_caller_is_told_when_to_come_back() -> None:
    assert answered(COHERE_JINA, ERRORS["full"])[2]["retry-after"] == "2"


def test_teis_error_types_say_whose_turn_it_is() -> None:
    kinds = {name: answered(TEI, error)[1]["error_type"] for name, error in ERRORS.items()}
    assert kinds == {
        "invalid": "Validation",
        "nothing": "Empty",
        "too long": "Validation",
        "unknown": "Validation",
        "too many": "Validation",
        "full": "Overloaded",
        "draining": "Unhealthy",
        "late": "Overloaded",
        "failed": "Backend",
        "ours": "Backend",
    }


def test_openais_shape_names_the_field_and_our_code() -> None:
    assert answered(OPENAI, ERRORS["invalid"])[1] == {
        "error": {
            "message": "top_n: wrong",
            "type": "invalid_request",
            "param": "top_n",
            "code": 400,
        }
    }
    assert answered(OPENAI, ERRORS["draining"])[1]["error"]["param"] is None


def test_one_body_is_parsed_by_clients_of_cohere_jina_and_vllm() -> None:
    body = answered(COHERE_JINA, ERRORS["invalid"])[1]
    assert body["message"] == body["detail"] == "top_n: wrong"
    assert body["error"] == answered(OPENAI, ERRORS["invalid"])[1]["error"]


def test_a_part_of_an_answer_is_told_as_what_is_missing() -> None:
    assert "4 of 9 ads had a score within 30 ms" in ERRORS["late"].message


@pytest.mark.parametrize("dialect", [TEI, OPENAI, COHERE_JINA, OPEN_INFERENCE])
def test_every_error_of_ours_is_documented(dialect: Dialect) -> None:
    documented = " ".join(entry["description"] for entry in dialect.documented_errors().values())
    assert all(error.code in documented for error in STATUS_OF)
