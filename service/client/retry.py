"""Which failures are tried again: few, seldom, and only while the deadline allows it.

Scoring changes nothing at the service, so a second try is always *safe*. It is not always right: a
service that is late has no room for the same work twice, and clients that try again on every
failure keep it overloaded after the cause has gone. So only what cost the service (nearly) nothing
is tried again:

    429                      after the time that the service names (`retry_after_ms`, else
                             Retry-After), never sooner, and not at all if it names none
    503 not_ready            this replica takes no work; another one, or this one soon, may
    no connection            nothing was received: refused, say, or the host's name cannot be looked
                             up just now
    a kept connection that   it was closed while idle; a new one has no reason to be, so that may
    was closed before any    have been the work of this very request
    byte of an answer

Never: a wait for an answer that ended in a timeout, 504 (the work was done once, and time is over),
500, other 5xx and 408 (it would fail again, or a proxy gave up waiting), 422, 413 and 415 (the
request is wrong), 401, 403, 404, 405, redirects, an unknown host and a certificate that is not
trusted (the address is), an answer that broke off or is not the service's.

Three bounds hold together: `max_attempts` for a call; the deadline, by which the wait and a useful
rest must fit; and a budget for all calls of a client together, one retry for ten calls in the long
run, so that a service that refuses everything sees a tenth more requests and not twice as many.
Waits have full jitter (uniform from 0 to a bound that doubles), on top of what the service names:
callers that failed together must not come back together.
Source: M. Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass

from service.client.arguments import number, whole_number
from service.client.errors import AdrelError, ConnectionFailed, NotReady, Overloaded
from service.client.forks import renew_in_children


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often, how soon.

    Attributes:
        max_attempts: Requests for one call, the first one included; 1 never tries again.
        base_ms: Bound of the first random wait; doubles each time.
        cap_ms: Largest bound of a random wait.
        least_left_ms: What must be left after the wait for a try to be of use.
        budget_share: Retries for each call in the long run.
        budget_burst: Retries that may be saved up.
    """

    max_attempts: int = 2
    base_ms: float = 4
    cap_ms: float = 50
    least_left_ms: float = 5
    budget_share: float = 0.1
    budget_burst: float = 10

    def __post_init__(self) -> None:
        whole_number("max_attempts", self.max_attempts, 1, 10)
        for name in ("base_ms", "cap_ms", "least_left_ms", "budget_share", "budget_burst"):
            number(name, getattr(self, name), 0)


class RetryBudget:
    """Retries that are left to all calls of a client together. Safe to share among threads."""

    def __init__(self, policy: RetryPolicy) -> None:
        self._policy = policy
        self._left = policy.budget_burst
        self.renew()
        renew_in_children(self)

    def renew(self) -> None:
        """Have a lock that no thread of a parent process holds."""
        self._lock = threading.Lock()

    def call_began(self) -> None:
        """A call earns a share of a retry."""
        with self._lock:
            self._left = min(self._policy.budget_burst, self._left + self._policy.budget_share)

    def take(self) -> bool:
        """Whether one retry is left; if so it is taken."""
        with self._lock:
            if self._left < 1:
                return False
            self._left -= 1
            return True


def is_retryable(error: AdrelError) -> bool:
    """Whether a failure is of a kind that may be tried again."""
    match error:
        case Overloaded():
            return error.retry_after_s is not None
        case NotReady():
            return error.code == "not_ready"  # a foreign 503 can be anything
        case ConnectionFailed():
            return error.unread
        case _:
            return False


def wait_before_retry_s(
    policy: RetryPolicy, error: AdrelError, attempts: int, left_s: float, chance: float
) -> float | None:
    """How long to wait before the next try; None: give up.

    Args:
        policy: The bounds.
        error: Why the last attempt failed.
        attempts: How many there were.
        left_s: Seconds until the deadline.
        chance: A random number in 0-1.
    """
    if attempts >= policy.max_attempts or not is_retryable(error):
        return None
    bound_ms = min(policy.cap_ms, policy.base_ms * 2.0 ** (attempts - 1))
    wait_s = (error.retry_after_s or 0.0) + chance * bound_ms / 1000
    if wait_s + policy.least_left_ms / 1000 >= left_s:
        return None
    return wait_s


class Retries:
    """The policy, its budget and its chance, shared by all calls of a client."""

    def __init__(self, policy: RetryPolicy, random: Callable[[], float]) -> None:
        self._policy = policy
        self._random = random
        self._budget = RetryBudget(policy)

    def call_began(self) -> None:
        """A call earns a share of a retry."""
        self._budget.call_began()

    def wait_s(self, error: AdrelError, attempts: int, left_s: float) -> float | None:
        """How long to wait before the next attempt; None: give up."""
        wait_s = wait_before_retry_s(self._policy, error, attempts, left_s, self._random())
        return wait_s if wait_s is not None and self._budget.take() else None
