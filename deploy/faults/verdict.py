"""Whether a service survived: what must hold of every request, as one pure function."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from dataclasses import dataclass, field

from deploy.faults.outcomes import HONEST, Ended, Outcome
from deploy.faults.witness import Wait

ANSWERED = HONEST | {Outcome.FAILED, Outcome.NOT_READY, Outcome.FAULT}

ENOUGH_ANSWERED = 0.5
"""Share of the requests that must get scores without a fault, or its absence shows nothing."""

MACHINE_FACTOR = 2.0
"""What a witness waits once, a request may wait for its batch and again for its answer."""


@dataclass(frozen=True, slots=True)
class Window:
    """A time in which more may happen than otherwise.

    Attributes:
        begin_s: Monotonic seconds.
        end_s: Likewise; a request that was under way at any time in between is in the window.
        allowed: Outcomes beside the honest ones.
        late: Answers may come late too.
    """

    begin_s: float
    end_s: float
    allowed: frozenset[Outcome] = frozenset()
    late: bool = False

    def holds(self, ended: Ended) -> bool:
        """The request was under way in it."""
        return ended.sent_s <= self.end_s and ended.ended_s >= self.begin_s


@dataclass(slots=True)
class Story:
    """What a scenario did, and what it saw beside the requests.

    Attributes:
        windows: When more was allowed.
        mended_s: When the fault was over; None where there was none to get over.
        versions: Models of which at least one answer must have come.
        complaints: What it saw that should not be.
        exit_code: Of the service; None where it still ran.
    """

    windows: list[Window] = field(default_factory=list)
    mended_s: float | None = None
    versions: frozenset[str] = frozenset()
    complaints: list[str] = field(default_factory=list)
    exit_code: int | None = None

    def expect(self, holds: bool, complaint: str) -> None:
        """Keep the complaint unless it holds."""
        if not holds:
            self.complaints.append(complaint)


@dataclass(frozen=True, slots=True)
class Verdict:
    """The account of one scenario.

    Attributes:
        counts: Requests by outcome.
        latest_ms: The longest from sending to the end of an answer.
        machine_ms: The longest that the machine kept a thread waiting.
        recovered_s: From the end of the fault to the first good answer; None without a fault.
        complaints: What should not be; empty means survived.
    """

    counts: collections.Counter[Outcome]
    latest_ms: float
    machine_ms: float
    recovered_s: float | None
    complaints: tuple[str, ...]


def verdict(
    sent: int,
    ended: Sequence[Ended],
    story: Story,
    *,
    waits: Sequence[Wait] = (),
    timeout_ms: float,
    late_ms: float,
    recover_s: float,
) -> Verdict:
    """Account for every request.

    Args:
        sent: How many there were.
        ended: What became of each.
        story: Of the scenario.
        waits: When the machine kept a witness waiting. Twice what of them lies in a time is granted
            to it.
        timeout_ms: Each request's own.
        late_ms: How much later than that an answer may be.
        recover_s: How long after the fault the first good answer may come.
    """
    complaints = list(story.complaints)
    if len(ended) != sent:
        complaints.append(f"{sent} requests, {len(ended)} ends")
    strays = collections.Counter[str]()
    for one in ended:
        if not any(one.outcome in HONEST | window.allowed for window in _around(one, story)):
            strays[f"{one.outcome} where it may not be ({one.why})"] += 1
    complaints += [f"{n} x {stray}" for stray, n in strays.items()]
    late = [
        took_ms for one in ended if (took_ms := _late_ms(one, story, waits, timeout_ms + late_ms))
    ]
    if late:
        complaints.append(f"{len(late)} answers late, one {max(late):.0f} ms after it was sent")
    good = [one for one in ended if one.outcome is Outcome.OK]
    missing = story.versions - {one.version for one in good}
    if missing:
        complaints.append(f"no good answer of {', '.join(sorted(missing))}")
    recovered_s = None
    if story.mended_s is not None:
        after = [one.ended_s for one in good if one.sent_s >= story.mended_s]
        recovered_s = min(after, default=float("inf")) - story.mended_s
        granted_s = _granted_s(waits, story.mended_s, story.mended_s + recovered_s)
        if recovered_s > recover_s + granted_s:
            complaints.append(f"no good answer within {recover_s:g} s of the fault's end")
    elif not good:
        complaints.append("not one good answer")
    answered = [one.ended_s - one.sent_s for one in ended if one.outcome in ANSWERED]
    return Verdict(
        collections.Counter(one.outcome for one in ended),
        max(answered, default=0.0) * 1000,
        max((wait.end_s - wait.begin_s for wait in waits), default=0.0) * 1000,
        recovered_s,
        tuple(complaints),
    )


def too_little_answered(account: Verdict) -> bool:
    """Whether the machine, without a fault, served too little for any scenario to be judged."""
    n_good = account.counts[Outcome.OK] + account.counts[Outcome.PARTIAL]
    return n_good < ENOUGH_ANSWERED * account.counts.total()


def _around(ended: Ended, story: Story) -> list[Window]:
    """The windows that a request was under way in."""
    return [NOTHING, *(window for window in story.windows if window.holds(ended))]


def _late_ms(ended: Ended, story: Story, waits: Sequence[Wait], limit_ms: float) -> float | None:
    """How long an answer took that was late; None of one that was not, or had a reason."""
    took_ms = (ended.ended_s - ended.sent_s) * 1000
    if ended.outcome not in ANSWERED or took_ms <= limit_ms:
        return None
    granted_ms = _granted_s(waits, ended.sent_s, ended.ended_s) * 1000
    excused = took_ms <= limit_ms + granted_ms or any(one.late for one in _around(ended, story))
    return None if excused else took_ms


def _granted_s(waits: Sequence[Wait], begin_s: float, end_s: float) -> float:
    """What the machine excuses in that time."""
    return MACHINE_FACTOR * sum(wait.within_s(begin_s, end_s) for wait in waits)


NOTHING = Window(0.0, 0.0)
