"""The client for threads."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Self, Unpack

import httpx

from service.client.blocking_transport import DeadlineTransport, until
from service.client.call import Call, CallOptions, Calls
from service.client.connections import JSON_HEADERS, SCORE_PATH, checked_base_url
from service.client.errors import AdrelError, RequestRefused
from service.client.fallback import Fallback, with_fallback
from service.client.result import ScoreResult
from service.client.retry import Retries, RetryPolicy
from service.domain import Ad


class AdrelClient:
    """Asks one service for scores; any number of threads may share it.

    Connections are kept; proxies that the environment names are not used. A call ends by its
    deadline, connecting and retries included; only looking up a host's name is the system's and
    waits as long as that does. What is left when a request is sent goes with it as `timeout_ms`,
    less `network_margin_ms`.
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
            base_url: Where the service is, such as `http://127.0.0.1:8000`.
            timeout_ms: Time for a call that names none.
            network_margin_ms: Kept back of what the service is told it has; of a short time at most
                a quarter.
            retry: What is tried again; at most one more attempt by default.
            headers: Sent with every request, such as what a proxy asks for.
            transport: How bytes travel; a `DeadlineTransport` with other options, or a test's. Any
                other one of httpx bounds each wait by what is left, not their sum.
            clock: Monotonic seconds.
            sleep: Waits for some seconds.
            random: A number in 0-1, for the waits between attempts.

        Raises:
            ValueError: A URL or a number that cannot work.
        """
        self._calls = Calls(
            timeout_ms, network_margin_ms, Retries(retry or RetryPolicy(), random), clock
        )
        self._sleep = sleep
        self._http = httpx.Client(
            base_url=checked_base_url(base_url),
            headers={**(headers or {}), **JSON_HEADERS},
            transport=transport or DeadlineTransport(),
        )

    def score(self, query: str, ads: Sequence[Ad], **options: Unpack[CallOptions]) -> ScoreResult:
        """Score the ads; some may have none, see each one's status.

        Args:
            query: What the user typed.
            ads: At most as many as the service takes; the result keeps their order.
            **options: `timeout_ms`, `priority`, `min_score`, `request_id`.

        Raises:
            AdrelError: No ad has a score; the kind says why.
            ValueError: A timeout or a number that is none.
        """
        return self._run(self._calls.begin(query, ads, **options))

    def score_or_fallback(
        self, query: str, ads: Sequence[Ad], fallback: Fallback, **options: Unpack[CallOptions]
    ) -> ScoreResult:
        """Score the ads, and ask `fallback` about each one that the service did not score in time.

        Args:
            query: What the user typed.
            ads: The result keeps their order.
            fallback: From the query and an ad to a score or None.
            **options: As for `score`.

        Raises:
            RequestRefused: The request is wrong.
            ValueError: A timeout or a number that is none, or a fallback's score out of range.
        """
        call = self._calls.begin(query, ads, **options)
        try:
            result = self._run(call)
        except RequestRefused:
            raise
        except AdrelError as error:
            result = call.unanswered(error)
        return with_fallback(result, call.ask, fallback)

    def _run(self, call: Call) -> ScoreResult:
        with until(call.deadline):
            while True:
                try:
                    return call.result(*self._exchange(call))
                except AdrelError as error:
                    wait_s = call.wait_before_retry_s(error)
                self._sleep(wait_s)

    def _exchange(self, call: Call) -> tuple[int, Mapping[str, str], bytes]:
        answer_begun = False
        call.begin_attempt()
        request = self._http.build_request(
            "POST",
            SCORE_PATH,
            content=_body_when_sent(call),
            headers={"Content-Length": str(call.body_bytes)},
            timeout=max(0.0, call.deadline.left_s()),
        )
        try:
            response = self._http.send(request, stream=True)
            answer_begun = True
            with contextlib.closing(response):
                return response.status_code, response.headers, response.read()
        except httpx.RequestError as error:
            raise call.failure(error, answer_begun) from error

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _body_when_sent(call: Call) -> Iterator[bytes]:
    yield call.body()
