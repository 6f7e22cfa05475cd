from __future__ import annotations

import re

import httpx
import pytest
from fastapi import FastAPI

from service.api import playground_route
from service.api.playground_route import FOLDER, POLICY

pytestmark = pytest.mark.anyio

FILES = {"/": "index.html"} | {
    f"/playground/{file.name}": file.name for file in FOLDER.iterdir() if file.suffix != ".html"
}  # all that the folder has


async def ask(path: str, method: str = "GET", **headers: str) -> httpx.Response:
    app = FastAPI()
    app.include_router(playground_route.router)
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://adrel") as client:
        return await client.request(method, path, headers=headers)


@pytest.mark.parametrize("path", FILES)
async def test_each_file_is_served_as_it_is_under_the_strict_policy(path: str) -> None:
    response = await ask(path)
    assert response.content == (FOLDER / FILES[path]).read_bytes()
    assert response.headers["Content-Security-Policy"] == POLICY
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    kind = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
    wanted = kind[FILES[path].rpartition(".")[2]]
    assert response.headers["Content-Type"] == f"{wanted}; charset=utf-8"


def test_the_policy_lets_the_page_speak_to_its_server_alone() -> None:
    directives = dict(part.strip().split(" ", 1) for part in POLICY.split(";"))
    assert directives.pop("default-src") == "'none'"
    own = {name for name, source in directives.items() if source == "'self'"}
    assert own == {"script-src", "style-src", "connect-src"}
    assert {name for name in directives if directives[name] == "'none'"} == {
        "form-action",
        "frame-ancestors",
        "base-uri",
    }


async def test_a_browser_that_has_the_file_is_told_so_in_place_of_getting_it_again() -> None:
    first = await ask("/")
    etag = first.headers["ETag"]
    for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = await ask("/", **{"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["ETag"] == etag
        assert again.headers["Content-Security-Policy"] == POLICY
    assert (await ask("/", **{"If-None-Match": '"other"'})).status_code == 200
    assert first.headers["Cache-Control"] == "no-cache"


@pytest.mark.parametrize(
    "path", ["/playground/", "/playground/index.html", "/playground/../playground_route.py"]
)
async def test_nothing_else_is_served(path: str) -> None:
    assert (await ask(path)).status_code == 404


def test_no_file_makes_markup_of_text_or_carries_script_or_style_inline() -> None:
    for name in FILES.values():
        content = (FOLDER / name).read_text(encoding="utf-8")
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", content
        )
        assert not re.search(r"<style|<script(?![^>]* src=)|\sstyle=|\son[a-z]+=", content)
        assert not re.search(r"https?://", content)
