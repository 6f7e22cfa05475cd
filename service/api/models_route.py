"""`GET /v1/models`: which model serves, which did before, how the last reload ended; the shadow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.state import Shadowing, state_of
from service.errors import NotReady, ServiceError, Unauthorized
from service.model_life.history import ModelHistory, ReloadReport, Tenure

MODELS_ROUTE = "/v1/models"

router = APIRouter(tags=["operations"])


class ListedModel(BaseModel):
    """A model as clients of OpenAI and vLLM look it up."""

    id: str = Field(description="Its name, as scoring requests may state it.")
    object: Literal["model"] = Field(description="What this is.")
    created: int = Field(description="Seconds since 1970 at which it began to serve here.")
    owned_by: Literal["adrel"] = Field(description="Always the same.")


class ModelTenure(BaseModel):
    """A model and its time of service."""

    name: str = Field(description="Of the model.")
    version: str = Field(description="Derived from its content.")
    bundle: str = Field(description="Name of the folder that it was read from, links followed.")
    since: datetime = Field(description="When it began to serve.")
    until: datetime | None = Field(
        default=None, description="When another took over; absent while it serves."
    )


class ShadowModel(ModelTenure):
    """A second model, whose scores callers never see."""

    role: Literal["shadow"] = Field(description="What it does here.")
    share: float = Field(gt=0, le=1, description="Of the requests, those that it scores again.")


class LastReload(BaseModel):
    """How a reload ended; why one failed, the service's log says."""

    result: Literal["changed", "unchanged", "failed"] = Field(
        description="Another model serves, the same one, or the same one since the folder holds "
        "nothing that can be served."
    )
    at: datetime = Field(description="When it ended.")
    took_ms: float = Field(
        description="From asking to the end, the old model's last pairs included."
    )


class ModelsResponse(BaseModel):
    """The model that serves, as a list of one and with its history."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "object": "list",
                    "data": [
                        {
                            "id": "adrel-minilm-l6",
                            "object": "model",
                            "created": 1796040000,
                            "owned_by": "adrel",
                        }
                    ],
                    "serving": {
                        "name": "adrel-minilm-l6",
                        "version": "07a79ee3df85",
                        "bundle": "2026-11-30",
                        "since": "2026-11-30T12:00:00.250+00:00",
                    },
                    "previous": {
                        "name": "adrel-minilm-l6",
                        "version": "5e1c0a77d210",
                        "bundle": "2026-11-23",
                        "since": "2026-11-23T12:00:00.125+00:00",
                        "until": "2026-11-30T12:00:00.250+00:00",
                    },
                    "last_reload": {
                        "result": "changed",
                        "at": "2026-11-30T12:00:00.500+00:00",
                        "took_ms": 2135.4,
                    },
                    "shadow": {
                        "name": "adrel-minilm-l6",
                        "version": "0c4be97e1d55",
                        "bundle": "2026-12-07",
                        "since": "2026-11-30T12:00:00.750+00:00",
                        "role": "shadow",
                        "share": 0.05,
                    },
                }
            ]
        }
    )

    object: Literal["list"] = Field(description="What this is.")
    data: list[ListedModel] = Field(description="The model that serves.")
    serving: ModelTenure = Field(description="The model that serves.")
    previous: ModelTenure | None = Field(
        description="The one before it; null where there was none since the start."
    )
    last_reload: LastReload | None = Field(
        description="Null before the first. One that was refused since another was under way does "
        "not count."
    )
    shadow: ShadowModel | None = Field(
        description="The model that scores a sample again to be compared; null where none does."
    )


@router.get(
    MODELS_ROUTE,
    summary="Which model serves since when",
    response_model=ModelsResponse,
    responses=documented_errors(Unauthorized, NotReady, ServiceError),
)
async def models(request: Request) -> Response:
    """The model that serves, the one before it, how the last reload ended, and the shadow.

    `object` and `data` are what clients of OpenAI and vLLM look for.
    """
    state = state_of(request)
    history = history_out(state.ready_reloads().history())
    return json_response({**history, "shadow": _shadow_out(state.shadow)})


def history_out(history: ModelHistory) -> dict[str, Any]:
    """As JSON. Why a reload failed is not in it: that may name folders, and callers may ask."""
    serving, previous, last = history.serving, history.previous, history.last_reload
    listed = {
        "id": serving.name,
        "object": "model",
        "created": int(serving.since_s),
        "owned_by": "adrel",
    }
    return {
        "object": "list",
        "data": [listed],
        "serving": tenure_out(serving),
        "previous": tenure_out(previous) if previous is not None else None,
        "last_reload": report_out(last) if last is not None else None,
    }


def tenure_out(tenure: Tenure) -> dict[str, Any]:
    """One model as JSON."""
    out = {
        "name": tenure.name,
        "version": tenure.version,
        "bundle": tenure.bundle,
        "since": _instant(tenure.since_s),
    }
    if tenure.until_s is not None:
        out["until"] = _instant(tenure.until_s)
    return out


def _shadow_out(shadow: Shadowing | None) -> dict[str, Any] | None:
    if shadow is None:
        return None
    return {**tenure_out(shadow.tenure), "role": "shadow", "share": shadow.share}


def report_out(report: ReloadReport) -> dict[str, Any]:
    """The end of a reload as JSON, without the reason of a failure."""
    out: dict[str, Any] = {
        "result": report.result,
        "at": _instant(report.at_s),
        "took_ms": round(report.took_s * 1000, 1),
    }
    if report.workers:
        out["workers"] = list(report.workers)
    return out


def _instant(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
