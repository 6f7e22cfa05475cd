"""The client for threads."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack, cast

import httpx

from service.client.arguments import function, instance
from service.client.blocking_transport import DeadlineTransport
from service.client.call import Call, CallOptions, Calls
from service.client.deadline_network import until
from service.client.errors import AdrelError, BadAnswer
from service.client.fallback import Fallback, checked_fallback, with_fallback
from service.client.result import ScoreResult
from service.client.retry import RetryPolicy
from service.domain import Ad


class AdrelClient:
    """Asks one service for scores; any number of threads may share it.

    Connections are kept, but a forked process opens its own; proxies that the environment names are
    not used. A call ends by its deadline, connecting and retries included; only looking up a host's
    name is the system's and waits as long as that does. What is left when a request is sent goes
    with it as `timeout_ms`, less `network_margin_ms`.
    """

    def __init__(  # noqa: PLR0913  # all but two are for tests and unusual networks
        self,
        base_url: str,
        *,
        timeout_ms: float,
        network_margin_ms: float = 2,
        retry: RetryPolicy | None = None,
        headers: Mapping[str, str] | None = None,
        transport: httpx.BaseTransport | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
        random: Callable[[], float] = random.random,
    ) -> None:
        """Open no connection yet.

        Args:
            base_url: Where the service is, such as `http://127.0.0.1:8000`; a path is kept.
            timeout_ms: Time for a call that names none; at most 60,000, as for the service.
            network_margin_ms: Kept back of what the service is told it has; of a short time at most
                a quarter.
            retry: What is tried again; at most one more attempt by default.
            headers: Sent with every request, such as what a proxy asks for. Host and those that
                tell of the body and the connection are the client's own.
            transport: How bytes travel; a `DeadlineTransport` with other options, or a test's. Any
                other one of httpx bounds each wait by what is left, not their sum, and a forked
                process must not use it.
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
        self._transport = (
            DeadlineTransport()
            if transport is None
            else instance("transport", transport, httpx.BaseTransport)
        )

    def score(self, query: str, ads: Sequence[Ad], **options: Unpack[CallOptions]) -> ScoreResult:
        """Score the ads; some may have none, see each one's status.

        Args:
            query: What the user typed.
            ads: At most as many as the service takes; the result keeps their order.
            **options: `timeout_ms`, `priority`, `min_score`, `request_id`.

        Raises:
            AdrelError: No ad has a score; the kind says why.
            TypeError: An argument of another type, or an unknown option; nothing was sent.
            ValueError: What no service takes, such as an empty query, no ads or an ad without a
                text; nothing was sent.
            RuntimeError: The client is closed.
        """
        return self._run(self._calls.begin(query, ads, **options))

    def score_or_fallback(
        self, query: str, ads: Sequence[Ad], fallback: Fallback, **options: Unpack[CallOptions]
    ) -> ScoreResult:
        """Score the ads, and ask `fallback` about each one that the service did not score in time.

        Args:
            query: What the user typed.
            ads: The result keeps their order.
            fallback: A plain function from the query and an ad to a score or None. With None the ad
                keeps its status and has no score; so too, with a line in the log, where it raises
                or gives something else.
            **options: As for `score`.

        Returns:
            The result; where no answer came, its `error` says why.

        Raises:
            RequestRefused: The request is wrong (422, 413, 415). No other `AdrelError` is raised:
                also with a wrong address or credentials (`WrongEndpoint`) the auction goes on.
            TypeError: As for `score`, or a fallback that is no such function.
            ValueError: As for `score`.
            RuntimeError: The client is closed.
        """
        asked_then = checked_fallback(fallback)
        call = self._calls.begin(query, ads, **options)
        try:
            result = self._run(call)
        except AdrelError as error:
            result = call.unanswered(error)
        return with_fallback(result, call.ask, asked_then)

    def _run(self, call: Call) -> ScoreResult:
        with until(call.deadline):
            while True:
                try:
                    return self._attempt(call)
                except AdrelError as error:
                    wait_s = call.wait_before_retry_s(error)
                self._sleep(wait_s)

    def _attempt(self, call: Call) -> ScoreResult:
        request = call.begin_attempt()
        request.extensions["timeout"] = httpx.Timeout(max(0.0, call.deadline.left_s())).as_dict()
        try:
            with contextlib.closing(self._transport.handle_request(request)) as response:
                body = call.answer_bytes(response.status_code)
                for piece in cast("httpx.SyncByteStream", response.stream):
                    body.add(piece)
                try:
                    return call.result(response.status_code, response.headers, body.whole())
                except BadAnswer:  # it may be another request's, and the next one too
                    if "network_stream" in response.extensions:
                        response.extensions["network_stream"].close()
                    raise
        except httpx.RequestError as error:
            call.fail(error)

    def close(self) -> None:
        """Close the connections."""
        self._calls.end()
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
