"""Every way in which the service says no, and when.

    ServiceError                  .code is stable; .message is safe to show to a client
    |- Unauthorized               before anything is read: no key, or none that is known
    |- InvalidRequest             bytes -> request: not JSON, or a field is wrong
    |- UnsupportedMediaType       the body is not declared as JSON, or is compressed
    |- BodyTooLarge               more bytes than the limit; read no further
    |- RequestTimeout             the body did not come in time
    |- ClientGone                 the caller hung up before it had its answer
    |- TooManyAds                 request -> pairs: more ads than one request may carry
    |- Overloaded                 pairs -> queue: nothing was admitted
    |   |- QueueFull              the queue would hold more seconds of work than its limit
    |   `- DeadlineUnreachable    it would be late, or make an admitted one late
    |- NotReady                   before warm-up has ended, while draining, or with no worker left
    |- NotLive                    a probe's answer alone: only a new process can cure it
    |- DeadlineExceeded           queue -> answer: time ran out before any ad had a score
    |- InferenceFailed            batch -> logits: the runtime refused the batch
    |   `- OutOfMemory            fewer pairs at a time may succeed; never reaches a caller
    `- ReloadError                an operator's reload did not happen; the model serves on
        |- BundleRefused          what the bundle's folder holds now cannot be served
        `- ReloadRunning          another reload is under way

HTTP statuses are decided in `service.api.error_handlers` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

MAX_MESSAGE_CHARS = 500  # names that a caller makes up may be of any length
MAX_QUOTED_CHARS = 100


class ServiceError(Exception):
    """Base of all errors that a caller of the API can meet.

    Attributes:
        code: Stable slug, in the error body and as the metric label `outcome`.
        message: What happened, the two numbers, what to do. Safe to show: cut where it quotes
            more of a request than fits.
        details: Machine-readable facts, such as one entry per faulty field; likewise.
    """

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, details: Sequence[Mapping[str, Any]] = ()) -> None:
        self.message = _cut(message)
        self.details = tuple(
            {name: _cut(fact) if isinstance(fact, str) else fact for name, fact in detail.items()}
            for detail in details
        )
        super().__init__(self.message)


def _cut(text: str, limit_chars: int = MAX_MESSAGE_CHARS) -> str:
    return text if len(text) <= limit_chars else f"{text[:limit_chars]}..."


class Unauthorized(ServiceError):
    """The service asks for a key, and the request has none that it knows."""

    code = "unauthorized"

    def __init__(self, has_key: bool) -> None:
        """Say what is missing, never what was sent.

        Args:
            has_key: The request carries a key.
        """
        problem = "the key is not known here" if has_key else "a key is needed"
        super().__init__(
            f"{problem}; send it as `Authorization: Bearer KEY` or as `X-API-Key: KEY`"
        )
        self.has_key = has_key


class InvalidRequest(ServiceError):
    """The body is not a valid request; `details` has one entry per fault."""

    code = "invalid_request"


class UnsupportedMediaType(ServiceError):
    """The content type is not JSON, or the body is compressed."""

    code = "unsupported_media_type"

    def __init__(self, content_type: str, content_encoding: str = "") -> None:
        """Say what is wrong.

        Args:
            content_type: Of the request; wrong where nothing follows.
            content_encoding: Where that is wrong.
        """
        if content_encoding:
            shown = _cut(content_encoding, MAX_QUOTED_CHARS)
            super().__init__(f"Content-Encoding {shown} is not read; send the body uncompressed")
        else:
            shown = _cut(content_type, MAX_QUOTED_CHARS) or "none"
            super().__init__(f"content type must be application/json, got {shown}")


class BodyTooLarge(ServiceError):
    """The body is longer than the limit."""

    code = "body_too_large"

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(
            f"request body is over the limit of {limit_bytes} bytes; send fewer or shorter ads"
        )


class RequestTimeout(ServiceError):
    """The caller did not send the whole body in time."""

    code = "request_timeout"

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"the body was not complete {limit_s:g} s after the headers")


class ClientGone(ServiceError):
    """The caller hung up before it had its answer. Nobody reads this one; it is counted."""

    code = "client_gone"

    def __init__(self) -> None:
        super().__init__("the caller closed the connection before it had its answer")


class TooManyAds(ServiceError):
    """One request carries more ads than the limit."""

    code = "too_many_ads"

    def __init__(self, n_ads: int, limit_ads: int, field: str = "ads") -> None:
        """Say how many there are.

        Args:
            n_ads: In the request.
            limit_ads: One request may carry.
            field: What the caller's protocol calls them.
        """
        super().__init__(
            f"{field}: got {n_ads}, the limit is {limit_ads} per request; split the request",
            [{"field": field, "got": n_ads, "limit": limit_ads}],
        )


class Overloaded(ServiceError):
    """There is more work than can be done in time. Nothing of the request was admitted.

    Attributes:
        retry_after_s: When trying again may pay, in predicted seconds.
    """

    def __init__(self, message: str, wait_s: float, retry_after_s: float) -> None:
        details = [
            {
                "predicted_ms": round(wait_s * 1000, 1),
                "retry_after_ms": round(retry_after_s * 1000, 1),
            }
        ]
        super().__init__(message, details)
        self.retry_after_s = retry_after_s


class QueueFull(Overloaded):
    """Admission would make the queue longer, in predicted seconds, than its limit."""

    code = "queue_full"

    def __init__(self, wait_s: float, limit_s: float, retry_after_s: float) -> None:
        super().__init__(
            f"with this request the queue would hold {wait_s * 1000:.0f} ms of work, the limit is "
            f"{limit_s * 1000:.0f} ms; try again later",
            wait_s,
            retry_after_s,
        )


class DeadlineUnreachable(Overloaded):
    """With what waits already, this request or an admitted one would be late."""

    code = "deadline_unreachable"

    def __init__(self, n_ads: int, wait_s: float, timeout_s: float, retry_after_s: float) -> None:
        super().__init__(
            f"{n_ads} ads would take {wait_s * 1000:.0f} ms or more now; with "
            f"{timeout_s * 1000:.4g} ms left they or what was admitted before would be late; "
            "allow more time, send fewer ads, or try again later",
            wait_s,
            retry_after_s,
        )


CUT_OFF = "the service stopped before this request was scored"


class NotReady(ServiceError):
    """The service cannot score now: it is starting, draining before it stops, or stuck."""

    code = "not_ready"

    def __init__(self, why: str) -> None:
        super().__init__(f"not ready: {why}")


class NotLive(ServiceError):
    """Something has failed that only a new process can cure. Never the outcome of a request."""

    code = "not_live"

    def __init__(self, why: str) -> None:
        super().__init__(f"not live: {why}; restart the process")


class DeadlineExceeded(ServiceError):
    """The deadline passed before any ad of the request had a score.

    Or before all had one, where the caller's protocol has no word for a part of an answer.
    """

    code = "deadline_exceeded"

    def __init__(self, timeout_s: float, n_ads: int, n_scored: int = 0) -> None:
        super().__init__(
            f"{n_scored or 'none'} of {n_ads} ads had a score within {timeout_s * 1000:g} ms; "
            "allow more time or send fewer ads"
        )


class InferenceFailed(ServiceError):
    """The runtime failed on every ad of the request. The cause is logged, not shown."""

    code = "inference_failed"

    def __init__(self, message: str = "the model failed on every ad of this request") -> None:
        super().__init__(message)


class OutOfMemory(InferenceFailed):
    """Memory did not suffice for the batch. No caller meets it: the batch runs again in halves."""


class ReloadError(ServiceError):
    """A reload that an operator asked for did not happen; the model that served before serves on.

    Never the outcome of a request for scores.
    """


class BundleRefused(ReloadError):
    """What the bundle's folder holds now cannot be served; a start would fail for the same reason.

    For operators: the message may name folders.
    """

    code = "bundle_refused"

    def __init__(self, why: Exception) -> None:
        super().__init__(f"the bundle cannot be served, the model of before serves on: {why}")


class ReloadRunning(ReloadError):
    """Another reload is under way; it may have read the folder before it was changed."""

    code = "reload_running"

    def __init__(self) -> None:
        super().__init__("another reload is under way; ask again when it has ended")
