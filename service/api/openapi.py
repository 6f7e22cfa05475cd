"""The OpenAPI document: what the framework reads off the routes, made whole.

It adds the bodies that routes read by themselves, puts in the limits that are settings, and shows
the models' examples wherever these models are sent or answered.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Response
from fastapi.openapi.docs import get_swagger_ui_html
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.api.compatible import routes as compatible
from service.api.explain_schemas import ExplainRequest
from service.api.json_response import json_response
from service.api.schemas import NULL, ScoreRequest
from service.api.state import RequestLimits

BODIES: tuple[type[BaseModel], ...] = (ScoreRequest, ExplainRequest, *compatible.BODIES)

# The framework's own errors for names in paths: here any text is a name, known or not.
NEVER_ANSWERED = ("HTTPValidationError", "ValidationError")

UNAUTHORIZED = "401"

DOCUMENT_PATH = "/openapi.json"
PAGE_PATH = "/docs"

REF_PREFIX = "#/components/schemas/"

TAGS = [
    {"name": "scoring", "description": "The native API: ids, partial answers, deadlines."},
    {"name": "operations", "description": "Probes, metrics and the facts of the model."},
    {
        "name": "rerank",
        "description": "For clients of Cohere, Jina, Infinity, vLLM and text-embeddings-inference.",
    },
    {"name": "text-embeddings-inference", "description": "For its clients, beside POST /rerank."},
    {"name": "vllm", "description": "For clients of vLLM's scores."},
    {"name": "open inference protocol", "description": "Version 2, for KServe's and Triton's."},
]


def settings_shown(limits: RequestLimits) -> dict[str, float]:
    """The limits by the names of their settings, as descriptions refer to them."""
    return {
        "max_ads_per_request": limits.max_ads,
        "max_body_bytes": limits.max_body_bytes,
        "default_timeout_ms": limits.default_timeout_s * 1000,
        "max_timeout_ms": limits.max_timeout_s * 1000,
    }


SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "A key, as a bearer token."},
    "key": {
        "type": "apiKey",
        "in": "header",
        "name": "X-API-Key",
        "description": "The same key, in a header of its own.",
    },
}


def install(
    app: FastAPI,
    limits: RequestLimits,
    more_bodies: Sequence[type[BaseModel]],
    open_paths: frozenset[str] | None = None,
) -> None:
    """Have `app` serve the whole document, and a page that shows it.

    Args:
        app: With all its routes.
        limits: That are settings.
        more_bodies: Beside `BODIES`: that routes refer to by name.
        open_paths: That need no key; None where none is asked for anywhere.
    """
    generate = app.openapi
    app.openapi_tags = TAGS

    def openapi() -> dict[str, Any]:
        document = generate()
        schemas = document["components"]["schemas"]
        _, definitions = models_json_schema(
            [(body, "validation") for body in (*BODIES, *more_bodies)],
            ref_template=f"{REF_PREFIX}{{model}}",
        )
        schemas.update(definitions["$defs"])
        for name in NEVER_ANSWERED:
            schemas.pop(name, None)
        for path in document["paths"].values():
            for operation in path.values():
                _drop_what_is_never_answered(operation["responses"])
                for media in _media(operation):
                    _show_examples(media, schemas)
        _tell_of_keys(document, open_paths)
        _fill_in(document, settings_shown(limits))
        return document

    app.openapi = _once(openapi)  # type: ignore[method-assign]  # FastAPI's way to extend it

    # Not `async`: the first time takes 0.3 s, in a thread, where it holds nobody up.
    @app.get(DOCUMENT_PATH, include_in_schema=False)
    def openapi_json() -> Response:
        return json_response(app.openapi())

    @app.get(PAGE_PATH, include_in_schema=False)
    def page() -> Response:
        return get_swagger_ui_html(openapi_url=DOCUMENT_PATH.removeprefix("/"), title=app.title)


def _once(make: Callable[[], dict[str, Any]]) -> Callable[[], dict[str, Any]]:
    made: list[dict[str, Any]] = []
    lock = threading.Lock()  # the framework's own document is changed in place

    def made_once() -> dict[str, Any]:
        with lock:
            if not made:
                made.append(make())
        return made[0]

    return made_once


def _drop_what_is_never_answered(responses: dict[str, Any]) -> None:
    for status, response in list(responses.items()):
        if f"{REF_PREFIX}{NEVER_ANSWERED[0]}" in str(response):
            del responses[status]


def _tell_of_keys(document: dict[str, Any], open_paths: frozenset[str] | None) -> None:
    """Say which routes need a key, and have no refusal for want of one at all others."""
    if open_paths is not None:
        document["components"]["securitySchemes"] = SECURITY_SCHEMES
    for path, operations in document["paths"].items():
        for operation in operations.values():
            if open_paths is None or path in open_paths:
                operation["responses"].pop(UNAUTHORIZED, None)
            else:
                operation["security"] = [{name: []} for name in SECURITY_SCHEMES]


def _media(operation: dict[str, Any]) -> list[dict[str, Any]]:
    parts = [operation.get("requestBody", {}), *operation["responses"].values()]
    return [media for part in parts for media in part.get("content", {}).values()]


def _show_examples(media: dict[str, Any], schemas: Mapping[str, Any]) -> None:
    if "example" in media or "examples" in media:
        return
    counts = itertools.count(1)
    examples = {
        f"{next(counts)}, {name}": {"value": value}
        for name, value in _examples(media["schema"], schemas)
    }
    if examples:
        media["examples"] = examples


def _examples(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Name and value of all examples of what a schema may be."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(REF_PREFIX)
        return [(name, value) for value in schemas[name].get("examples", ())]
    if "items" in schema:
        return [(name, [value]) for name, value in _examples(schema["items"], schemas)]
    return [found for kind in schema.get("anyOf", ()) for found in _examples(kind, schemas)]


def _fill_in(node: Any, values: Mapping[str, float]) -> None:  # noqa: ANN401  # any JSON
    """Put what they stand for in the place of settings' names and of NULL, below `node`."""
    for key, value in list(node.items() if isinstance(node, dict) else enumerate(node)):
        if isinstance(value, str) and "{" in value and key != "operationId":
            node[key] = _filled(value, values)
        elif isinstance(value, (dict, list)):
            _fill_in(value, values)


def _filled(text: str, values: Mapping[str, float]) -> str | float | None:
    if text == NULL:
        return None
    if text[1:-1] in values and text == f"{{{text[1:-1]}}}":
        return values[text[1:-1]]
    return re.sub(
        r"\{(\w+)\}",
        lambda found: (
            f"{values[found[1]]:.12g} (setting `{found[1]}`)" if found[1] in values else found[0]
        ),
        text,
    )
