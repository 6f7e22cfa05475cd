"""The client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

import httpx

from service.client.call import Call, CallOptions, Calls
from service.client.connections import (
    JSON_HEADERS,
    KEEP_ALIVE_S,
    MAX_IN_FLIGHT,
    SCORE_PATH,
    checked_base_url,
)
from service.client.errors import AdrelError, RequestRefused
from service.client.fallback import Fallback, with_fallback
from service.client.result import ScoreResult
from service.client.retry import Retries, RetryPolicy
from service.domain import Ad


class AsyncAdrelClient:
    """Asks one service for scores; any number of tasks of one event loop may share it.

    As `AdrelClient`, with one timer for the whole call: looking up a host's name is bounded too. A
    call that is cancelled closes its connection, and the service drops what it still had to do.
    """

    def __init__(  # noqa: PLR0913  # all but two are for tests and unusual networks
        self,
        base_url: str,
        *,
        timeout_ms: float,
        network_margin_ms: float = 2,
        retry: RetryPolicy | None = None,
        max_in_flight: int = MAX_IN_FLIGHT,
        headers: Mapping[str, str] | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Open no connection yet.

        Args:
            base_url: As for `AdrelClient`.
            timeout_ms: As for `AdrelClient`.
            network_margin_ms: As for `AdrelClient`.
            retry: As for `AdrelClient`.
            max_in_flight: Calls that are on the wire at once; others wait their turn, within their
                own deadline. httpx's pool needs time that grows with the square of what is in it,
                on the event loop, so that with hundreds no timer would ring in time.
            headers: As for `AdrelClient`.
            transport: How bytes travel; one of httpx's, with another TLS context or pool.
            clock: Monotonic seconds.
            sleep: Waits for some seconds.
            random: A number in 0-1, for the waits between attempts.

        Raises:
            ValueError: A URL or a number that cannot work.
        """
        self._calls = Calls(
            timeout_ms, network_margin_ms, Retries(retry or RetryPolicy(), random), clock
        )
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight: must be at least 1, got {max_in_flight}")
        self._sleep = sleep
        self._turns = asyncio.Semaphore(max_in_flight)
        limits = httpx.Limits(
            max_connections=max_in_flight,
            max_keepalive_connections=max_in_flight,
            keepalive_expiry=KEEP_ALIVE_S,
        )
        self._http = httpx.AsyncClient(
            base_url=checked_base_url(base_url),
            headers={**(headers or {}), **JSON_HEADERS},
            transport=transport or httpx.AsyncHTTPTransport(limits=limits, trust_env=False),
            timeout=None,  # noqa: S113  # one timer holds for all of a call
        )

    async def score(
        self, query: str, ads: Sequence[Ad], **options: Unpack[CallOptions]
    ) -> ScoreResult:
        """Score the ads; arguments and errors as for `AdrelClient.score`.

        Raises:
            AdrelError: No ad has a score; the kind says why.
            ValueError: A timeout or a number that is none.
        """
        return await self._run(self._calls.begin(query, ads, **options))

    async def score_or_fallback(
        self, query: str, ads: Sequence[Ad], fallback: Fallback, **options: Unpack[CallOptions]
    ) -> ScoreResult:
        """Score the ads, or ask `fallback`; as `AdrelClient.score_or_fallback`.

        Raises:
            RequestRefused: The request is wrong.
            ValueError: A timeout or a number that is none, or a fallback's score out of range.
        """
        call = self._calls.begin(query, ads, **options)
        try:
            result = await self._run(call)
        except RequestRefused:
            raise
        except AdrelError as error:
            result = call.unanswered(error)
        return with_fallback(result, call.ask, fallback)

    async def _run(self, call: Call) -> ScoreResult:
        try:
            async with asyncio.timeout(call.deadline.left_s()):
                while True:
                    try:
                        async with self._turns:
                            return call.result(*await self._exchange(call))
                    except AdrelError as error:
                        wait_s = call.wait_before_retry_s(error)
                    await self._sleep(wait_s)
        except TimeoutError:
            raise call.out_of_time() from None

    async def _exchange(self, call: Call) -> tuple[int, Mapping[str, str], bytes]:
        answer_begun = False
        call.begin_attempt()
        request = self._http.build_request(
            "POST",
            SCORE_PATH,
            content=_body_when_sent(call),
            headers={"Content-Length": str(call.body_bytes)},
        )
        try:
            response = await self._http.send(request, stream=True)
            answer_begun = True
            async with contextlib.aclosing(response):
                return response.status_code, response.headers, await response.aread()
        except httpx.RequestError as error:
            raise call.failure(error, answer_begun) from error

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


async def _body_when_sent(call: Call) -> AsyncIterator[bytes]:
    yield call.body()
