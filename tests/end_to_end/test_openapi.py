"""The OpenAPI document is whole, and a running service keeps what it promises."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from service.api.openapi import TAGS, settings_shown
from service.api.state import RequestLimits
from service.settings import Settings
from tests.end_to_end.running_service import RunningService, running

MAX_BODY_BYTES = 1_048_577  # more digits than a short form of numbers has
JSON = "application/json"


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8, "--max-body-bytes", str(MAX_BODY_BYTES)) as started:
        yield started


@pytest.fixture(scope="module")
def document(service: RunningService) -> dict[str, Any]:
    found: dict[str, Any] = service.client.get("/openapi.json").json()
    return found


@pytest.fixture(scope="module")
def names(service: RunningService) -> dict[str, str]:
    identity = service.client.get("/v1/model").json()["model"]
    return {"model": identity["name"], "version": identity["version"]}


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def posts(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, method, operation in operations(document):
        if method == "post":
            yield path, operation


def media_of(operation: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from operation.get("requestBody", {}).get("content", {}).items()
    for response in operation["responses"].values():
        yield from response.get("content", {}).items()


def examples_of(media: dict[str, Any]) -> list[Any]:
    return [example["value"] for example in media["examples"].values()]


def check(document: dict[str, Any], schema: dict[str, Any], value: object) -> None:
    whole = {**schema, "components": document["components"]}
    jsonschema.validate(value, whole, cls=jsonschema.Draft202012Validator)


def check_response(
    document: dict[str, Any], operation: dict[str, Any], response: httpx.Response
) -> None:
    """The status is documented, and so are body and headers."""
    documented = operation["responses"][str(response.status_code)]
    if "content" in documented:
        kind = response.headers["content-type"].partition(";")[0]
        content = response.json() if kind == JSON else response.text
        check(document, documented["content"][kind]["schema"], content)
    else:
        assert not response.content
    for name, header in documented.get("headers", {}).items():
        if name in response.headers:
            text = response.headers[name]
            value = int(text) if header["schema"]["type"] == "integer" else text
            check(document, header["schema"], value)
    ours = {name for name in response.headers if name.startswith(("x-", "inference-", "retry-"))}
    assert ours <= {name.lower() for name in documented.get("headers", {})}


def undescribed(node: Any, where: str) -> Iterator[str]:  # noqa: ANN401  # any JSON
    """Places of properties without a word about them."""
    if isinstance(node, list):
        for number, item in enumerate(node):
            yield from undescribed(item, f"{where}[{number}]")
    if isinstance(node, dict):
        for name, schema in node.get("properties", {}).items():
            if not schema.get("description"):
                yield f"{where}.{name}"
        for key, item in node.items():
            if key not in ("examples", "example"):
                yield from undescribed(item, f"{where}.{key}")


def test_the_document_is_valid_openapi(document: dict[str, Any]) -> None:
    from openapi_spec_validator import OpenAPIV31SpecValidator

    assert [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()] == []


def test_every_field_parameter_header_and_answer_is_described(document: dict[str, Any]) -> None:
    missing = list(undescribed(document, ""))
    for name, schema in document["components"]["schemas"].items():
        missing += [] if schema.get("description") else [name]
    for path, method, operation in operations(document):
        where = f"{method} {path}"
        missing += [f"{where} {key}" for key in ("summary", "description") if key not in operation]
        parts = dict(operation["responses"])
        if method == "post":
            parts["body"] = operation["requestBody"]
        for name, part in parts.items():
            missing += [] if part["description"] else [f"{where} {name}"]
            for header, described in part.get("headers", {}).items():
                missing += [] if described["description"] else [f"{where} {name} {header}"]
        for parameter in operation.get("parameters", ()):
            missing += [] if parameter.get("description") else [f"{where} {parameter['name']}"]
    assert missing == []


def test_every_route_shows_what_it_takes_and_all_that_it_answers(document: dict[str, Any]) -> None:
    for path, method, operation in operations(document):
        assert set(operation["tags"]) <= {tag["name"] for tag in TAGS}
        for kind, media in media_of(operation):
            where = f"{method} {path}: {kind} {media['schema']}"
            if kind == JSON:
                assert media["examples"], where
                for value in examples_of(media):
                    check(document, media["schema"], value)
            else:
                assert media["example"], where


def test_every_body_that_a_route_takes_has_an_example(document: dict[str, Any]) -> None:
    for path, operation in posts(document):
        media = operation["requestBody"]["content"][JSON]
        schemas = media["schema"].get("anyOf", [media["schema"]])
        for schema in schemas:
            name = schema["$ref"].rpartition("/")[2]
            assert any(name in key for key in media["examples"]), f"{path} {name}"


def test_every_example_is_answered_as_documented(
    service: RunningService, document: dict[str, Any], names: dict[str, str]
) -> None:
    n_examples = 0
    for path, operation in posts(document):
        for example in examples_of(operation["requestBody"]["content"][JSON]):
            response = service.client.post(path.format(**names), json=example)
            assert response.status_code == 200, f"{path} {example} {response.text}"
            check_response(document, operation, response)
            n_examples += 1
    assert n_examples >= 16


def test_every_get_is_answered_as_documented(
    service: RunningService, document: dict[str, Any], names: dict[str, str]
) -> None:
    others = {"model": "other", "version": "other"}
    for path, method, operation in operations(document):
        if method == "get":
            response = service.client.get(path.format(**names))
            assert response.status_code == 200
            check_response(document, operation, response)
            if "{" in path:
                unknown = service.client.get(path.format(**others))
                assert unknown.status_code == 404
                check_response(document, operation, unknown)


def test_errors_that_a_caller_can_cause_are_answered_as_documented(
    service: RunningService, document: dict[str, Any], names: dict[str, str]
) -> None:
    for path, operation in posts(document):
        where = path.format(**names)
        (example, *_) = examples_of(operation["requestBody"]["content"][JSON])
        packed = {"content-encoding": "gzip", "X-Request-Id": "auction-9"}
        wrong = {"X-Request-Timeout-Ms": "soon"}
        late = {"X-Request-Timeout-Ms": "0.001"}
        long = {**example, "more": "x" * MAX_BODY_BYTES}
        seen = set()
        requests: list[dict[str, Any]] = [
            {"json": {}},
            {"content": b"[", "headers": {"content-type": JSON}},
            {"json": example, "headers": packed},
            {"json": without_timeout(example), "headers": wrong},
            {"json": without_timeout(unseen(example)), "headers": late},
            {"json": long},
        ]
        for request in requests:
            response = service.client.post(where, **request)
            check_response(document, operation, response)
            seen.add(response.status_code)
        assert seen in ({422, 415, 413, 504}, {400, 415, 413, 504}), path
        if "{" in path:
            unknown = service.client.post(path.format(model="x", version="y"), json=example)
            assert unknown.status_code == 404
            check_response(document, operation, unknown)


def unseen(body: dict[str, Any]) -> dict[str, Any]:
    """The same with other texts, so that nothing of it is in the cache."""
    changed: dict[str, Any] = json.loads(
        re.sub(r"(?<=[ \"])(best|Best) ", "very best ", json.dumps(body))
    )
    assert changed != body
    return changed


def without_timeout(body: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if name != "timeout_ms"}
    parameters = body.get("parameters")
    return kept if parameters is None else {**kept, "parameters": {"priority": 1}}


def test_limits_that_are_settings_stand_there_with_their_numbers(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    assert schemas["ScoreRequest"]["properties"]["ads"]["maxItems"] == 1000
    assert schemas["ScoreRequest"]["properties"]["timeout_ms"]["maximum"] == 60_000
    operation = document["paths"]["/v1/score"]["post"]
    assert (
        f"At most {MAX_BODY_BYTES} (setting `max_body_bytes`)"
        in operation["requestBody"]["description"]
    )
    (timeout,) = (one for one in operation["parameters"] if "Timeout" in one["name"])
    assert timeout["schema"] == {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 10_000,
        "maximum": 60_000,
    }


def test_where_no_key_is_asked_for_none_is_spoken_of(document: dict[str, Any]) -> None:
    assert "securitySchemes" not in document["components"]
    for path, method, operation in operations(document):
        assert "401" not in operation["responses"], f"{method} {path}"
        assert "security" not in operation


def test_answers_with_scores_say_where_their_time_went(document: dict[str, Any]) -> None:
    for path, operation in posts(document):
        assert "Server-Timing" in operation["responses"]["200"]["headers"], path


def test_generators_of_clients_find_nothing_that_they_stumble_over(
    document: dict[str, Any],
) -> None:
    schemas = document["components"]["schemas"]
    assert "enum" not in json.dumps(schemas["TeiRerankRequest"])
    assert "const" not in schemas["ServedModel"]["properties"]["schema_version"]
    assert "anyOf" not in schemas["AdIn"]


@pytest.mark.parametrize(
    "body",
    [
        {"query": " ", "ads": [{"id": "A", "text": "shoe"}]},
        {"query": "", "ads": [{"id": "A", "text": "shoe"}]},
        {"query": "red", "ads": [{"id": "A"}]},
        {"query": "red", "ads": [{"id": "A", "description": "shoe"}]},
    ],
)
def test_blank_queries_and_ads_without_a_text_do_not_fit_the_schema(
    document: dict[str, Any], body: dict[str, Any]
) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(document, {"$ref": "#/components/schemas/ScoreRequest"}, body)


def test_the_settings_that_descriptions_name_exist(document: dict[str, Any]) -> None:
    shown = set(settings_shown(RequestLimits(1, 1, 1, 1, 1)))
    assert shown <= set(Settings.model_fields)
    assert {name for name in shown if f"{{{name}}}" in json.dumps(document)} == set()


def test_every_route_tells_of_faults_and_every_refusal_when_to_come_back(
    document: dict[str, Any],
) -> None:
    for path, method, operation in operations(document):
        assert "500" in operation["responses"], f"{method} {path}"
    for path, operation in posts(document):
        assert "Retry-After" in operation["responses"]["429"]["headers"], path
        assert {"413", "415", "429", "500", "503", "504"} <= operation["responses"].keys(), path
