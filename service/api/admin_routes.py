"""What only operators may ask for: on the admin port, never on the callers'."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from service.api.json_response import json_response
from service.api.models_route import report_out, tenure_out
from service.api.state import state_of

RELOAD_ROUTE = "/admin/reload"

router = APIRouter()


@router.post(RELOAD_ROUTE)
async def reload(request: Request) -> Response:
    """Serve what the bundle's folder holds now; answered when the old model has ended.

    200 with `result` `changed`, or `unchanged` where the folder holds the model that serves. 422
    where its content cannot be served, with the reason: the model of before serves on. 409 where
    another reload is under way. With several workers it reloads all of them, one after the other,
    and `workers` says how that ended for each. A body is not read: which folder it is, the
    configuration says.
    """
    reloads = state_of(request).ready_reloads()
    report = await reloads.reload()
    return json_response({**report_out(report), "serving": tenure_out(reloads.history().serving)})
