"""Why a call has no scores.

AdrelError            .code, .message, .details, .retry_after_s, .http_status
|- RequestRefused     the request is wrong: 422, 413, 415. Fix the caller
|- WrongEndpoint      401, 403, 404, 405, a redirect, an unknown host, an untrusted certificate: no
|                     score route there, or not for this caller. Fix the base URL, the headers or
|                     the deployment
|- Overloaded         429: nothing of the request was admitted
|- NotReady           503: starting or draining
|- DeadlineExceeded   504, or the caller's own time is over
|- ServiceFailed      any other 5xx, and any other 4xx in the service's words, such as 408
|- ConnectionFailed   no connection, or it brought no whole answer
`- BadAnswer          an answer that is not the service's: a proxy's page, a missing ad
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class AdrelError(Exception):
    """Base of all that a call can raise for a reason of the request, the service or the network.

    Attributes:
        code: The service's own slug (README, "Errors"), else one of the client's:
            `deadline_exceeded`, `connection_failed`, `bad_answer`, `unknown_host`, `tls_failed`,
            `unsendable_request`, `http_<status>`.
        message: What happened.
        details: The service's facts for programs.
        retry_after_s: When the service says that trying again may pay.
        http_status: None where no answer came.
    """

    def __init__(
        self,
        code: str,
        message: str,
        details: Sequence[Mapping[str, Any]] = (),
        retry_after_s: float | None = None,
        http_status: int | None = None,
    ) -> None:
        super().__init__(code, message, details, retry_after_s, http_status)
        self.code = code
        self.message = message
        self.details = tuple(details)
        self.retry_after_s = retry_after_s
        self.http_status = http_status

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class RequestRefused(AdrelError):
    """The request is wrong, and would be again: raised by every method."""


class WrongEndpoint(AdrelError):
    """The address is not that of the score route, or does not let this caller in.

    No fault of the request, so `score_or_fallback` asks the fallback and auctions go on. It does
    not pass by itself: whoever deploys should hear of it.
    """


class Overloaded(AdrelError):
    """There is more work than can be done in time; nothing of the request was admitted."""


class NotReady(AdrelError):
    """The service is starting or draining, or what stands before it knows no replica."""


class DeadlineExceeded(AdrelError):
    """Time was over before any ad had a score."""


class ServiceFailed(AdrelError):
    """A fault of the service, of what stands before it, or of the way there."""


class ConnectionFailed(AdrelError):
    """There is no connection, or it brought no whole answer, or what is no HTTP.

    Attributes:
        unread: The service has read nothing of the request, as far as can be told: no connection
            came about, or a kept one was closed before any byte of an answer.
    """

    def __init__(self, message: str, unread: bool) -> None:
        super().__init__("connection_failed", message)
        self.unread = unread

    def __reduce__(self) -> tuple[Any, ...]:  # copies and pickles take what __init__ takes
        return type(self), (self.message, self.unread)


class BadAnswer(AdrelError):
    """The answer is not one that the service gives, so no score in it can be trusted."""
