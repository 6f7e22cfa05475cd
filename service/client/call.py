"""One call, apart from who does the waiting: both clients drive it the same way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack

import httpx

from service.client.deadline import Deadline, service_timeout_ms
from service.client.errors import AdrelError, DeadlineExceeded
from service.client.failures import error_of_network, error_of_status
from service.client.result import AdResult, AdStatus, ScoreResult
from service.client.retry import Retries
from service.client.wire import (
    Ask,
    PriorityName,
    body_with_timeout,
    body_without_timeout,
    parse_answer,
)
from service.domain import Ad

LEAST_LEFT_S = 1e-6  # a timeout must not be 0; whoever sends notices by itself that time is over


class CallOptions(TypedDict, total=False):
    """What a call may say beside the query and the ads.

    Attributes:
        timeout_ms: Time for the whole call; the client's default where absent.
        priority: `auction` (the default) goes before `batch`.
        min_score: Asks for `eligible` on each ad.
        request_id: Echoed, and in the service's log; made up by the service where absent.
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
        body_bytes: Length of each attempt's body.
    """

    def __init__(
        self, ask: Ask, deadline: Deadline, network_margin_ms: float, retries: Retries
    ) -> None:
        self.ask = ask
        self.deadline = deadline
        self.attempts = 0
        self._rest = body_without_timeout(ask)
        self.body_bytes = len(body_with_timeout(self._rest, 1.0))
        self._network_margin_ms = network_margin_ms
        self._retries = retries

    def begin_attempt(self) -> None:
        """Count an attempt.

        Raises:
            DeadlineExceeded: There is no time for it.
        """
        if self.deadline.left_s() <= 0:
            raise self.out_of_time()
        self.attempts += 1

    def body(self) -> bytes:
        """The body of an attempt, with the time that is left now: ask for it when it is sent.

        Before that lie the wait for a connection and its making, which cost time too.
        """
        left_s = max(LEAST_LEFT_S, self.deadline.left_s())
        timeout_ms = service_timeout_ms(left_s, self._network_margin_ms)
        return body_with_timeout(self._rest, timeout_ms)

    def result(self, status: int, headers: Mapping[str, str], body: bytes) -> ScoreResult:
        """The result that an answer holds.

        Raises:
            AdrelError: It holds none.
        """
        if status != 200:
            raise error_of_status(status, headers, body)
        scored = parse_answer(body, self.ask)
        return ScoreResult(
            scored.request_id,
            scored.scores,
            scored.model,
            scored.timing,
            self.deadline.elapsed_ms(),
            self.attempts,
        )

    def failure(self, error: httpx.RequestError, answer_begun: bool) -> AdrelError:
        """The error of an exchange that brought no answer."""
        return error_of_network(error, answer_begun) or self.out_of_time()

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
        """A result without a score, for a call that ended in `error`."""
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
        timeout_ms: float,
        network_margin_ms: float,
        retries: Retries,
        clock: Callable[[], float],
    ) -> None:
        Deadline.after(timeout_ms, clock)  # a bad default fails now, not in the first auction
        if not network_margin_ms >= 0:
            raise ValueError(f"network_margin_ms: must be 0 or more, got {network_margin_ms!r}")
        self._timeout_ms = timeout_ms
        self._network_margin_ms = network_margin_ms
        self._retries = retries
        self._clock = clock

    def begin(self, query: str, ads: Sequence[Ad], **options: Unpack[CallOptions]) -> Call:
        """A call whose time runs from now.

        Raises:
            TypeError: An option that there is not, or a value that JSON has no word for.
            ValueError: A timeout or a number that is none.
        """
        deadline = Deadline.after(options.get("timeout_ms", self._timeout_ms), self._clock)
        asked: dict[str, Any] = {k: v for k, v in options.items() if k != "timeout_ms"}
        call = Call(
            Ask(query, tuple(ads), **asked), deadline, self._network_margin_ms, self._retries
        )
        self._retries.call_began()
        return call
