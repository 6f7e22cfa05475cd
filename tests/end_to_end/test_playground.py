"""The page at `/` in a real browser, against a real service."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.end_to_end.browser import CHROMIUM, Browser, Page, browsing
from tests.end_to_end.running_service import RunningService, running

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")

TAB, ENTER = ("Tab", 9), ("Enter", 13)
HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script> \u202eevil נעל 👟 &amp; ]]>"
TRICKY = "it's $HOME `id` $(id) \"q\" \\ !! red\n\n'; echo shoe #"


@pytest.fixture(scope="module")
def service(tiny_bundle_int8: Path) -> Iterator[RunningService]:
    with running(tiny_bundle_int8) as started:
        yield started


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browsing(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture
def page(browser: Browser, service: RunningService) -> Iterator[Page]:
    """A page that asks nobody but its service, and about which the browser has no complaint."""
    opened = browser.page()
    yield opened
    strangers = [url for url in opened.requested if not url.startswith(f"{service.url}/")]
    assert strangers == []
    # The browser tells of each answer with an error; those were asked for.
    own = [text for text in opened.complaints if "status of 422" not in text]
    assert own == []


def link(service: RunningService, query: str, *ads: dict[str, str], min_score: str = "") -> str:
    state = {"query": query, "ads": ads, "minScore": min_score, "timeout": ""}
    return f"{service.url}/#{quote(json.dumps(state), safe='')}"


def opened(page: Page, service: RunningService, query: str, *ads: dict[str, str]) -> None:
    page.open(link(service, query, *ads))
    page.until("document.querySelector('#query').value")


def scored(page: Page, n_ads: int) -> None:
    page.press("#score")
    page.until(f"document.querySelectorAll('.scores li').length === {n_ads}")


def test_what_is_typed_is_scored_and_shown_as_bars(page: Page, service: RunningService) -> None:
    page.open(f"{service.url}/")
    page.until("document.querySelectorAll('.ad').length === 3")  # the example
    page.press("#add")
    page.press(".ad:nth-child(3) .ad-foot button")
    page.type("#query", "red shoe")
    texts = ["cheap red shoe", "blue bag", "long lamp"]
    for number, text in enumerate(texts, start=1):
        page.type(f".ad:nth-child({number}) [data-field=title]", text)
        page.type(f".ad:nth-child({number}) [data-field=description]", "")
    page.run("document.querySelector('#options').open = true")
    ads = [{"id": "ABC"[i], "title": text} for i, text in enumerate(texts)]
    wanted = service.score({"query": "red shoe", "ads": ads}).json()
    least = sorted(ad["score"] for ad in wanted["scores"])[1]
    page.type("#min-score", str(least))
    scored(page, 3)
    shown = page.run(
        "[...document.querySelectorAll('.scores li')].map(row => [row.querySelector('.name')"
        ".innerText, row.querySelector('.number').innerText,"
        " parseFloat(row.querySelector('.filled').style.width),"
        " [...row.querySelectorAll('.mark')].map(mark => mark.innerText)])"
    )
    for (name, number, width, marks), ad in zip(shown, wanted["scores"], strict=True):
        assert (name, number) == (ad["id"], f"{ad['score']:.3f}")
        assert width == pytest.approx(100 * ad["score"], abs=0.01)
        assert marks == ["cached", "eligible" if ad["score"] >= least else "not eligible"]
    told = page.text("#results")
    assert f"{wanted['model']['name']} {wanted['model']['version']}" in told
    assert "in this browser" in told
    assert "inference" in told


def test_it_can_be_used_with_the_keyboard_alone(page: Page, service: RunningService) -> None:
    opened(page, service, "red shoe", {"title": "red bag", "description": "", "text": ""})
    page.run("document.querySelector('#query').focus()")
    page.key(*ENTER)
    page.until("document.querySelectorAll('.scores li').length === 1")
    visited = []
    while "Explain ad A" not in visited:
        page.key(*TAB)
        label = "document.activeElement"
        visited.append(page.run(f"{label}.ariaLabel ?? ({label}.labels?.[0] ?? {label}).innerText"))
        assert len(visited) < 40, visited
    assert {"Title", "Description", "Remove ad A", "+ Add an ad", "Score", "Copy link"} <= {
        label.strip() for label in visited
    }
    page.key(*ENTER)
    page.until("document.querySelector('#explanation h2')")
    assert page.run("document.activeElement.tagName") == "H2"
    page.key(*TAB)
    assert "without it: score" in page.text(".word:focus .tip")


def test_an_explanation_shows_words_and_tokens(page: Page, service: RunningService) -> None:
    opened(page, service, "red shoe", {"title": "cheap red bag", "description": "", "text": ""})
    scored(page, 1)
    page.press(".scores button")
    page.until("document.querySelector('#explanation .legend')")
    body = {"query": "red shoe", "ad": {"title": "cheap red bag"}}
    wanted = service.client.post("/v1/explain", json=body).json()
    words = page.run("[...document.querySelectorAll('.word bdi')].map(word => word.innerText)")
    assert words == ["red", "shoe", "cheap", "red", "bag"]
    drops = [w["logit_drop"] for side in ("query", "ad") for w in wanted[side]["words"]]
    colours = page.run("[...document.querySelectorAll('.word')].map(word => word.classList[1])")
    assert colours == ["against" if drop < 0 else "for" for drop in drops]
    rows = page.run(
        "[...document.querySelectorAll('#explanation tbody tr')]"
        ".map(row => [...row.cells].map(cell => cell.innerText))"
    )
    assert [row[:4] for row in rows] == [
        [str(t["position"]), t["token"], str(t["id"]), str(t["segment"])] for t in wanted["tokens"]
    ]


def test_hostile_text_is_shown_as_text(page: Page, service: RunningService) -> None:
    opened(page, service, HOSTILE, {"text": HOSTILE}, {"text": "shoe " * 200})
    scored(page, 2)
    assert page.text(".scores li:nth-child(1) .text") == HOSTILE
    assert "truncated" in page.text(".scores li:nth-child(2)")
    for number, told in ((1, "<img"), (2, "more characters did not fit")):
        page.press(f".scores li:nth-child({number}) button")
        name = "AB"[number - 1]
        page.until(f"document.querySelector('#explanation h2')?.innerText.startsWith('Ad {name}')")
        assert told in page.text("#explanation")
    assert page.run("document.querySelectorAll('img, script:not([src]), [onerror]').length") == 0
    page.press(".scores li:nth-child(1) button")
    page.until("document.querySelector('#explanation').textContent.includes('⟨U+202E⟩')")


def test_an_error_is_shown_as_the_service_gives_it(page: Page, service: RunningService) -> None:
    opened(page, service, "red", {"title": "", "description": "", "text": ""})
    page.press("#score")
    page.until("document.querySelector('[role=alert]')")
    error = service.score({"query": "red", "ads": [{"id": "A", "title": ""}]}).json()["error"]
    told = page.text("[role=alert]")
    assert error["code"] in told
    assert "422" in told
    assert error["message"] in told
    assert f"field: {error['details'][0]['field']}" in told
    assert any("status of 422" in text for text in page.complaints)


def test_the_copied_command_sends_the_same_whatever_the_texts_say(
    page: Page, service: RunningService, tmp_path: Path
) -> None:
    opened(page, service, f"{HOSTILE} it's", {"text": TRICKY})
    page.run("document.querySelector('#key').value = 'a secret'")
    page.press("#copy-curl")
    command = page.run("document.querySelector('#curl').textContent")
    stub = tmp_path / "curl"
    stub.write_text('#!/bin/sh\nprintf "%s\\0" "$@"\n', encoding="utf-8")
    stub.chmod(0o700)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    arguments = subprocess.run(
        ["sh", "-c", command],  # noqa: S607  # whatever shell there is
        env={"PATH": path, "ADREL_API_KEY": "k"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")[:-1]
    sent = json.loads(arguments.pop())
    assert sent == {"query": f"{HOSTILE} it's", "ads": [{"id": "A", "text": TRICKY}]}
    assert arguments == [
        "-sS", f"{service.url}/v1/score", "-H", "Content-Type: application/json",
        "-H", "Authorization: Bearer k", "--data-binary",
    ]  # fmt: skip
    assert "a secret" not in command


def test_a_link_brings_the_texts_back_and_sends_none_of_them(
    page: Page, browser: Browser, service: RunningService
) -> None:
    opened(page, service, "blue lamp", {"title": "old", "description": "", "text": ""})
    page.type("[data-field=title]", "best chair")
    page.run("document.querySelector('#key').value = 'a secret'")
    page.press("#copy-link")
    shared = page.run("location.href")
    other = browser.page()
    other.open(shared)
    other.until("document.querySelector('[data-field=title]')")
    assert other.run("document.querySelector('[data-field=title]').value") == "best chair"
    assert other.run("document.querySelector('#key').value") == ""
    assert "secret" not in shared
    assert not [url for url in other.requested if "chair" in url]


@pytest.mark.parametrize("fragment", ["#%", "#null", "#{}", "#[1]", '#{"ads":[null,7]}'])
def test_a_broken_link_breaks_nothing(page: Page, service: RunningService, fragment: str) -> None:
    page.open(f"{service.url}/{fragment}")
    page.until("document.querySelector('#model').innerText.includes('tiny')")
    page.press("#add")
    page.until("document.querySelector('.ad')")


def test_the_key_is_sent_with_each_call_and_stays_out_of_the_link(
    page: Page, service: RunningService
) -> None:
    opened(page, service, "red", {"title": "shoe", "description": "", "text": ""})
    page.run("document.querySelector('#key').value = 'a secret'")
    scored(page, 1)
    sent: list[dict[str, Any]] = [headers for headers in page.headers if "Authorization" in headers]
    assert [headers["Authorization"] for headers in sent] == ["Bearer a secret"]
    assert "secret" not in page.run("location.href")


def test_it_fits_a_phone(browser: Browser, service: RunningService) -> None:
    page = browser.page(width=360, height=740)
    opened(page, service, "red shoe", {"title": "x" * 200, "description": "", "text": ""})
    scored(page, 1)
    page.press(".scores button")
    page.until("document.querySelector('#explanation .legend')")
    assert page.run("document.documentElement.scrollWidth") <= 360
