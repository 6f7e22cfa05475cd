"""A headless Chromium, driven over a pipe by its DevTools protocol: no driver, no port, no library.

Messages are JSON with a zero byte behind each; see "remote-debugging-pipe" in Chromium's switches
and chromedevtools.github.io/devtools-protocol.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WAIT_S = 30
TURN_MS = 20

FLAGS = (
    "--headless=new",
    "--remote-debugging-pipe",
    "--no-sandbox",  # a container's root has no other way; the page is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
)


@dataclass
class Page:
    """One tab.

    Attributes:
        requested: Every URL that the page asked for.
        headers: Those that went with each.
        complaints: What the browser's console tells: violations of the page's own policy, errors
            of scripts, failed loads.
    """

    browser: Browser
    session: str
    requested: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401  # any JSON
        return self.browser.call(method, parameters, self.session)

    def open(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def run(self, script: str) -> Any:  # noqa: ANN401  # any JSON
        """The value of an expression in the page; a promise is waited for."""
        options = {"returnByValue": True, "awaitPromise": True, "userGesture": True}
        answer = self.call("Runtime.evaluate", expression=script, **options)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, condition: str) -> None:
        """Let the page go on until the expression holds."""
        stop_s = time.monotonic() + WAIT_S
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < stop_s, f"never: {condition}\n{self.text('body')}"
            self.run(f"new Promise(go => setTimeout(go, {TURN_MS}))")

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def press(self, selector: str) -> None:
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def key(self, name: str, code: int) -> None:
        """One key on whatever has the focus."""
        key = {"key": name, "code": name, "windowsVirtualKeyCode": code}
        text = {"text": "\r"} if name == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **key)

    def type(self, selector: str, text: str) -> None:
        """Replace what stands in a field, as a person would."""
        self.run(
            f"(e => {{ e.focus(); e.select(); }})(document.querySelector({json.dumps(selector)}))"
        )
        self.call("Input.insertText", text=text)

    def screenshot(self, file: Path) -> None:
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(answer["data"]))

    def heard(self, method: str, told: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requested.append(told["request"]["url"])
            self.headers.append(told["request"]["headers"])
        elif method == "Log.entryAdded":
            self.complaints.append(told["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(told["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(told["args"]))


class Browser:
    """The process and its two pipes."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._unread = b""
        self._n_calls = 0
        self._pages: dict[str, Page] = {}

    def page(self, *, width: int = 1200, height: int = 900, scheme: str = "light") -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, attached["sessionId"])
        self._pages[page.session] = page
        for domain in ("Page", "Runtime", "Network", "Log"):
            page.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.call("Emulation.setEmulatedMedia", features=[feature])
        return page

    def call(
        self, method: str, parameters: dict[str, Any], session: str | None = None
    ) -> dict[str, Any]:
        self._n_calls += 1
        message = {"id": self._n_calls, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._n_calls:
            page = self._pages.get(answer.get("sessionId", ""))
            if page and "method" in answer:
                page.heard(answer["method"], answer["params"])
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], WAIT_S)
            assert ready, "the browser says nothing"
            part = os.read(self._from, 1 << 20)
            assert part, "the browser has gone"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told


@contextmanager
def browsing(profile: Path) -> Iterator[Browser]:
    """A browser with a fresh profile in an empty folder, until the block ends."""
    assert CHROMIUM is not None
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    # Chromium reads from 3 and writes to 4; moved out of the way so that no two meet.
    moved = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (theirs_in, theirs_out)]
    shell = f'exec "$0" "$@" 3<&{moved[0]} 4>&{moved[1]}'
    command = ["bash", "-c", shell, CHROMIUM, *FLAGS, f"--user-data-dir={profile}"]
    process = subprocess.Popen(command, pass_fds=moved, stderr=subprocess.DEVNULL)
    for fd in (theirs_in, theirs_out, *moved):
        os.close(fd)
    try:
        browser = Browser(ours_out, ours_in)
        yield browser
        browser.call("Browser.close", {})
    finally:
        os.close(ours_out)
        os.close(ours_in)
        try:
            process.wait(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
