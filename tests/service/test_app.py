from __future__ import annotations

from typing import cast

import httpx
import pytest

from service.app import create_app
from service.model_life.loaded_model import LoadedModel
from service.settings import Settings

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("playground", "status"), [(True, 200), (False, 404)])
async def test_the_page_is_there_unless_it_is_switched_off(playground: bool, status: int) -> None:
    # The model is used when the application starts, which this one does not.
    app = create_app(Settings(playground=playground), cast("LoadedModel", None))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://adrel") as client:
        for path in ("/", "/playground/playground.js"):
            assert (await client.get(path)).status_code == status
