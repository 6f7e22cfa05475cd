"""The client for asyncio."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack, cast

import httpx

from service.client.arguments import function, instance, whole_number
from service.client.asynchronous_transport import KeepAliveTransport
from service.client.call import Call, CallOptions, Calls
from service.client.connections import MAX_IN_FLIGHT
from service.client.errors import AdrelError, BadAnswer
from service.client.fallback import Fallback, checked_fallback, with_fallback
from service.client.result import ScoreResult
from service.client.retry import RetryPolicy
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
                own deadline. Each has a connection of its own.
            headers: As for `AdrelClient`.
            transport: How bytes travel; a `KeepAliveTransport` with other options, or a test's.
            clock: Monotonic seconds.
            sleep: Waits for some seconds.
            random: A number in 0-1, for the waits between attempts.

        Raises:
            TypeError: An argument of another type.
            ValueError: A URL, a header or a number that cannot work.
        """
        self._calls = Calls(
            base_url,
            timeout_ms=timeout_ms,
            network_margin_ms=network_margin_ms,
            retry=retry,
            headers=headers,
            clock=clock,
            random=random,
        )
        self._sleep = function("sleep", sleep)
        self._turns = asyncio.Semaphore(whole_number("max_in_flight", max_in_flight, 1))
        self._transport = (
            KeepAliveTransport()
            if transport is None
            else instance("transport", transport, httpx.AsyncBaseTransport)
        )
        self._loop: asyncio.AbstractEventLoop | None = None

    async def score(
        self, query: str, ads: Sequence[Ad], **options: Unpack[CallOptions]
    ) -> ScoreResult:
        """Score the ads; arguments and errors as for `AdrelClient.score`.

        Raises:
            AdrelError: No ad has a score; the kind says why.
            RuntimeError: The client is closed, or was used in another event loop before.
        """
        return await self._run(self._calls.begin(query, ads, **options))

    async def score_or_fallback(
        self, query: str, ads: Sequence[Ad], fallback: Fallback, **options: Unpack[CallOptions]
    ) -> ScoreResult:
        """Score the ads, or ask `fallback`; as `AdrelClient.score_or_fallback`.

        The fallback runs on the event loop and must not block it.

        Raises:
            RequestRefused: The request is wrong.
            RuntimeError: The client is closed, or was used in another event loop before.
        """
        asked_then = checked_fallback(fallback)
        call = self._calls.begin(query, ads, **options)
        try:
            result = await self._run(call)
        except AdrelError as error:
            result = call.unanswered(error)
        return with_fallback(result, call.ask, asked_then)

    async def _run(self, call: Call) -> ScoreResult:
        self._stay_in_one_loop()
        try:
            async with asyncio.timeout(call.deadline.left_s()):
                while True:
                    try:
                        async with self._turns:
                            return await self._attempt(call)
                    except AdrelError as error:
                        wait_s = call.wait_before_retry_s(error)
                    await self._sleep(wait_s)
        except TimeoutError:
            raise call.out_of_time() from None

    async def _attempt(self, call: Call) -> ScoreResult:
        request = call.begin_attempt()
        try:
            response = await self._transport.handle_async_request(request)
            async with contextlib.aclosing(response):
                body = call.answer_bytes(response.status_code)
                async for piece in cast("httpx.AsyncByteStream", response.stream):
                    body.add(piece)
                try:
                    return call.result(response.status_code, response.headers, body.whole())
                except BadAnswer:  # it may be another request's, and the next one too
                    if "network_stream" in response.extensions:
                        await response.extensions["network_stream"].aclose()
                    raise
        except httpx.RequestError as error:
            call.fail(error)

    def _stay_in_one_loop(self) -> None:
        """Connections belong to a loop: in another one, a call would never end, or oddly."""
        loop = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = loop
        if self._loop is not loop:
            raise RuntimeError(
                "this client was used in another event loop; make one AsyncAdrelClient for each"
            )

    async def aclose(self) -> None:
        """Close the connections."""
        self._calls.end()
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
