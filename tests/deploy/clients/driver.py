"""A caller in another language, as a process that makes the calls that a test names.

A call is a line of percent-encoded fields between tabs: the service's URL, the timeout in ms, a
header or nothing, the least score or nothing, `score` or `fallback`, the query, and for each ad id,
title, description and text. So is its outcome: `returned` or `raised`, the error's code,
message, HTTP status and ms to wait before another try, the call's ms, and for each ad id, score,
status, eligible and truncated.
The fallback's score is what stands behind `fallback` and a space; else the length of the query in
UTF-8, in hundreds of bytes.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote, unquote

from service.client import Ad
from tests.deploy.clients.toolchains import PLAIN, Built

AMPLE_MS = 30_000
MAX_CALL_S = 60


@dataclass(frozen=True)
class AdOutcome:
    id: str
    score: float | None
    status: str
    eligible: bool | None
    truncated: bool


@dataclass(frozen=True)
class Outcome:
    """How a call ended; code, HTTP status and wait are empty or 0 where no AdrelError came."""

    raised: bool
    code: str
    message: str
    http_status: int
    retry_after_ms: float
    elapsed_ms: float
    ads: list[AdOutcome]


@dataclass
class Caller:
    process: subprocess.Popen[str]

    def call(
        self,
        url: str,
        query: str,
        ads: Sequence[Ad],
        *,
        timeout_ms: int = AMPLE_MS,
        min_score: float | None = None,
        fallback: bool | str = False,
        header: str = "",
    ) -> Outcome:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        least = "" if min_score is None else str(min_score)
        kind = f"fallback {fallback}" if isinstance(fallback, str) else "fallback"
        fields = [url, str(timeout_ms), header, least, kind if fallback else "score", query]
        for ad in ads:
            fields += [ad.id, ad.title, ad.description, ad.text]
        self.process.stdin.write(
            "\t".join(quote(field, safe="", errors="surrogateescape") for field in fields) + "\n"
        )
        self.process.stdin.flush()
        # A call that outlives its deadline shall fail its test, not stop the suite.
        watchdog = threading.Timer(MAX_CALL_S, self.process.kill)
        watchdog.start()
        line = self.process.stdout.readline()
        watchdog.cancel()
        assert line, "the driver has ended"
        return _outcome([unquote(field) for field in line.rstrip("\n").split("\t")])


def _outcome(fields: list[str]) -> Outcome:
    ending, code, message, status, wait, elapsed, *rest = fields
    ads = [
        AdOutcome(
            rest[i],
            float(rest[i + 1]) if rest[i + 1] else None,
            rest[i + 2],
            {"": None, "true": True, "false": False}[rest[i + 3]],
            rest[i + 4] == "true",
        )
        for i in range(0, len(rest), 5)
    ]
    return Outcome(
        raised=ending == "raised",
        code=code,
        message=message,
        http_status=int(status or 0),
        retry_after_ms=float(wait or 0),
        elapsed_ms=float(elapsed),
        ads=ads,
    )


@contextmanager
def driving(built: Built) -> Iterator[Caller]:
    """The process, until the block ends; proxies that its environment names lead nowhere."""
    nowhere = "http://127.0.0.1:9"
    variables = {"http_proxy": nowhere, "HTTP_PROXY": nowhere}
    with subprocess.Popen(
        built.driver,
        env={**PLAIN, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        try:
            yield Caller(process)
        finally:
            process.kill()
