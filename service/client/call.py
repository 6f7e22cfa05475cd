"""One call, apart from who does the waiting: both clients drive it the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, TypedDict, Unpack

import httpx

from service.client.affinity import affinity_key
from service.client.arguments import function, instance, number
from service.client.ask import Ask, PriorityName, checked_ask
from service.client.deadline import Deadline, service_timeout_ms
from service.client.endpoint import Endpoint
from service.client.errors import AdrelError, DeadlineExceeded, RequestRefused
from service.client.failures import error_of_network, error_of_status
from service.client.request_ids import RequestIds
from service.client.result import AdResult, AdStatus, ScoreResult
from service.client.retry import Retries, RetryPolicy
from service.client.wire import AnswerBytes, body_with_timeout, body_without_timeout, parse_answer
from service.domain import Ad

LEAST_LEFT_S = 1e-6  # a timeout must not be 0; whoever sends notices by itself that time is over


class CallOptions(TypedDict, total=False):
    """What a call may say beside the query and the ads.

    Attributes:
        timeout_ms: Time for the whole call; the client's default where absent.
        priority: `auction` (the default) goes before `batch`.
        min_score: Asks for `eligible` on each ad.
        request_id: In the service's log, and the answer must have it; made up where absent.
    """

    timeout_ms: float
    priority: PriorityName
    min_score: float | None
    request_id: str | None


class Call:
    """One call: its deadline, its attempts and what is made of each.

    Attributes:
        ask: What is asked.
        deadline: When it must have ended.
        attempts: Requests that were sent or tried.
    """

    def __init__(
        self,
        ask: Ask,
        deadline: Deadline,
        network_margin_ms: float,
        endpoint: Endpoint,
        retries: Retries,
    ) -> None:
        self.ask = ask
        self.deadline = deadline
        self.attempts = 0
        self._rest = body_without_timeout(ask)
        self._body_bytes = len(body_with_timeout(self._rest, 1.0))
        self._affinity_key = affinity_key(ask.query)
        self._network_margin_ms = network_margin_ms
        self._endpoint = endpoint
        self._retries = retries

    def begin_attempt(self) -> httpx.Request:
        """Count an attempt; its request.

        Raises:
            DeadlineExceeded: There is no time for it.
        """
        if self.deadline.left_s() <= 0:
            raise self.out_of_time()
        self.attempts += 1
        return self._endpoint.request(self._body, self._body_bytes, self._affinity_key)

    def _body(self) -> bytes:
        """The body of an attempt, with the time that is left now: asked for when it is sent.

        Before that lie the wait for a connection and its making, which cost time too.
        """
        left_s = max(LEAST_LEFT_S, self.deadline.left_s())
        timeout_ms = service_timeout_ms(left_s, self._network_margin_ms)
        return body_with_timeout(self._rest, timeout_ms)

    def answer_bytes(self, status: int) -> AnswerBytes:
        """Takes the body of an answer."""
        return AnswerBytes(len(self.ask.ads), self._body_bytes, status)

    def result(self, status: int, headers: Mapping[str, str], body: bytes) -> ScoreResult:
        """The result that an answer holds.

        Raises:
            AdrelError: It holds none.
        """
        if status != 200:
            raise error_of_status(status, headers, body)
        scored = parse_answer(body, self.ask)
        return ScoreResult(
            self.ask.request_id,
            scored.scores,
            scored.model,
            scored.timing,
            self.deadline.elapsed_ms(),
            self.attempts,
        )

    def fail(self, error: httpx.RequestError) -> NoReturn:
        """End an exchange that brought no answer.

        Raises:
            AdrelError: What that means.
        """
        # The words of a request that could not be written quote its headers: they hold keys.
        cause = None if isinstance(error, httpx.LocalProtocolError) else error
        raise error_of_network(error) or self.out_of_time() from cause

    def wait_before_retry_s(self, error: AdrelError) -> float:
        """How long to wait before the next attempt.

        Raises:
            AdrelError: `error`, when there shall be none.
        """
        wait_s = self._retries.wait_s(error, self.attempts, self.deadline.left_s())
        if wait_s is None:
            raise error
        return wait_s

    def out_of_time(self) -> DeadlineExceeded:
        """The caller's own deadline has passed."""
        timeout_ms = (self.deadline.ends_s - self.deadline.started_s) * 1000
        message = f"no answer within {timeout_ms:.6g} ms; attempts: {self.attempts}"
        return DeadlineExceeded("deadline_exceeded", message)

    def unanswered(self, error: AdrelError) -> ScoreResult:
        """A result without a score, for a call that ended in `error`.

        Raises:
            RequestRefused: `error`, when it is one: the fault is the caller's, and would stay.
        """
        if isinstance(error, RequestRefused):
            raise error
        late = isinstance(error, DeadlineExceeded)
        status = AdStatus.DEADLINE if late else AdStatus.FAILED
        return ScoreResult(
            self.ask.request_id,
            tuple(AdResult(ad.id, None, status) for ad in self.ask.ads),
            None,
            None,
            self.deadline.elapsed_ms(),
            self.attempts,
            error,
        )


class Calls:
    """What all calls of a client have in common."""

    def __init__(
        self,
        base_url: str,
        *,
        timeout_ms: float,
        network_margin_ms: float,
        retry: RetryPolicy | None,
        headers: Mapping[str, str] | None,
        clock: Callable[[], float],
        random: Callable[[], float],
    ) -> None:
        """Check what the caller gave; see `AdrelClient` for what it means.

        Raises:
            TypeError: An argument of another type.
            ValueError: A URL, a number or a header that cannot work.
        """
        self._endpoint = Endpoint(base_url, headers)
        self._clock = function("clock", clock)
        Deadline.after(timeout_ms, clock)  # a bad default fails now, not in the first auction
        self._timeout_ms = timeout_ms
        self._network_margin_ms = number("network_margin_ms", network_margin_ms, 0)
        policy = RetryPolicy() if retry is None else instance("retry", retry, RetryPolicy)
        self._retries = Retries(policy, function("random", random))
        self._request_ids = RequestIds()
        self._closed = False

    def begin(self, query: str, ads: Sequence[Ad], **options: Unpack[CallOptions]) -> Call:
        """A call whose time runs from now.

        Raises:
            TypeError: An argument of another type, or an option that there is not.
            ValueError: What no service takes; see `checked_ask`.
            RuntimeError: The client is closed.
        """
        asked: dict[str, Any] = dict(options)
        deadline = Deadline.after(asked.pop("timeout_ms", self._timeout_ms), self._clock)
        for name in asked:
            if name not in CallOptions.__optional_keys__:
                known = ", ".join(CallOptions.__annotations__)
                raise TypeError(f"{name}: no such option; there are {known}")
        if asked.get("request_id") is None:
            asked["request_id"] = self._request_ids.following()
        ask = checked_ask(query, ads, **asked)
        if self._closed:
            raise RuntimeError("this client is closed")
        self._retries.call_began()
        return Call(ask, deadline, self._network_margin_ms, self._endpoint, self._retries)

    def end(self) -> None:
        """No call begins from now on."""
        self._closed = True
