"""One request in the Open Inference Protocol: from its tensors to scores and back to tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from fastapi import Response

from service.api.answering import invalid
from service.api.body import read_body
from service.api.compatible.calls import Call, parse_fields, validated
from service.api.compatible.dialects import UnknownModel
from service.api.compatible.documents import priority_class
from service.api.compatible.open_inference_bodies import InferRequest, OutputWanted
from service.api.compatible.pair_scoring import Asked, score_pairs
from service.api.compatible.tensors import HEADER, input_texts, output_body, split_body
from service.api.request_ids import take_id
from service.api.state import ServiceState

MOST_URGENT = 1  # in Triton's numbers, where 0 is the default

INPUTS = ("query", "ad")
OUTPUTS = ("score", "logit")

ANY_VERSION = "1"
"""What many clients name unless told otherwise, since Triton's repositories count from it."""

STATISTICS = "stats"
"""Triton has its statistics of all models where a model of this name would be."""


async def answer_infer(call: Call, model: str, version: str | None) -> Response:
    """The tensors that were asked for.

    Raises:
        UnknownModel: The path names another model or version.
        InvalidRequest: A tensor or a parameter is wrong; names it.
        ServiceError: As `score_pairs` does.
    """
    request = call.request
    identity_of(call.state, model, version)
    # Triton's client declares no content type, and with binary data it is not JSON alone.
    content = await read_body(request, call.state.limits, any_type=True)
    head, binary = split_body(content, request.headers.get(HEADER))
    fields = parse_fields(head)
    take_id(request, fields.get("id"))
    body = validated(InferRequest, fields)
    texts = input_texts(body.inputs, binary, INPUTS)
    for name in INPUTS:
        if name not in texts:
            raise invalid("inputs", f"needs a tensor {name}")
    queries, ads = texts["query"], texts["ad"]
    if ads and len(queries) not in (1, len(ads)):
        raise invalid("query", f"must have 1 row or {len(ads)}, one for each ad: {len(queries)}")
    parameters = body.parameters or {}
    wanted = _wanted(body.outputs, parameters.get("binary_data_output") is True)
    asked = Asked(
        queries,
        ads,
        texts_field="ad",
        query_place="query" if len(queries) == 1 else "query[{}]",
        text_place="ad[{}]",
        priority=priority_class(_number(parameters, "priority"), MOST_URGENT),
        timeout_ms=_timeout_ms(parameters),
    )
    identity = identity_of(call.state, model, version)  # another may have come with the body
    scored = await score_pairs(call, asked)
    values = {"score": scored.scores, "logit": scored.margins}
    answer = {"model_name": identity["name"], "model_version": identity["version"]}
    answer |= {} if body.id is None else {"id": body.id}
    shape = next(tensor.shape for tensor in body.inputs if tensor.name == "ad")
    outputs = [(name, values[name], as_bytes) for name, as_bytes in wanted]
    content, json_bytes = output_body(answer, outputs, shape)
    headers = scored.headers
    if json_bytes is None:
        return Response(content, headers=headers, media_type="application/json")
    headers[HEADER] = str(json_bytes)
    return Response(content, headers=headers, media_type="application/octet-stream")


def identity_of(state: ServiceState, model: str, version: str | None) -> dict[str, str]:
    """Name and version of the model that serves.

    Args:
        state: The service.
        model: In the path.
        version: Likewise; None where there is none.

    Raises:
        NotReady: None does now.
        UnknownModel: The path names another.
    """
    _, _, facts = state.ready_parts()
    identity: dict[str, str] = facts["model"]
    if model == STATISTICS != identity["name"]:
        raise UnknownModel("there are no statistics here; GET /metrics has them for Prometheus")
    if model != identity["name"]:
        raise UnknownModel(f"unknown model {model[:100]!r}; {identity['name']!r} serves here")
    if version is not None and version not in (ANY_VERSION, identity["version"]):
        raise UnknownModel(
            f"unknown version {version[:100]!r} of {model!r}; {identity['version']!r} serves here"
        )
    return identity


def _wanted(outputs: Sequence[OutputWanted] | None, binary: bool) -> list[tuple[str, bool]]:
    """Names of the outputs, and whether each goes as bytes."""
    if not outputs:
        return [("score", binary)]
    wanted: dict[str, bool] = {}
    for output in outputs:
        if output.name not in OUTPUTS:
            raise invalid("outputs", f"there is no {output.name[:100]!r}, only score and logit")
        parameters = output.parameters or {}
        if "shared_memory_region" in parameters or "classification" in parameters:
            raise invalid(output.name, "neither shared memory nor classification is there")
        wanted[output.name] = parameters.get("binary_data", binary) is True
    return list(wanted.items())


def _timeout_ms(parameters: dict[str, Any]) -> float | None:
    timeout_us = _number(parameters, "timeout")
    return timeout_us / 1000 if timeout_us else None


def _number(parameters: dict[str, Any], name: str) -> int | None:
    """A parameter that is a number of 0 or more; 0 is its default.

    Raises:
        InvalidRequest: It is something else.
    """
    value = parameters.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        raise invalid(f"parameters.{name}", "must be a number of 0 or more")
    return math.ceil(value) if value < 1e15 else 10**15
