"""`GET /v1/models`: which model serves, which one did before, and how the last reload ended."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fastapi import APIRouter, Request, Response

from service.api.error_handlers import documented_errors
from service.api.json_response import json_response
from service.api.state import state_of
from service.model_life.history import ModelHistory, ReloadReport, Tenure

MODELS_ROUTE = "/v1/models"

router = APIRouter(tags=["operations"])


@router.get(MODELS_ROUTE, response_class=Response, responses={503: documented_errors()[503]})
async def models(request: Request) -> Response:
    """The model that serves and since when, the one before it, and how the last reload ended."""
    return json_response(history_out(state_of(request).ready_reloads().history()))


def history_out(history: ModelHistory) -> dict[str, Any]:
    """As JSON. Why a reload failed is not in it: that may name folders, and anyone may ask."""
    previous, last = history.previous, history.last_reload
    return {
        "serving": tenure_out(history.serving),
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


def report_out(report: ReloadReport) -> dict[str, Any]:
    """The end of a reload as JSON, without the reason of a failure."""
    return {
        "result": report.result,
        "at": _instant(report.at_s),
        "took_ms": round(report.took_s * 1000, 1),
    }


def _instant(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds")
