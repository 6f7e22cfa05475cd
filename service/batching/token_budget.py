"""How many padded tokens a batch may have after memory ran out: less at once, more bit by bit."""

from __future__ import annotations

from dataclasses import dataclass, replace

RECOVER_S = 30.0
"""Without a further failure for so long, the budget doubles. A shortage that is over costs little
for that time; one that lasts costs a failed run every so often."""


@dataclass(frozen=True, slots=True)
class TokenBudget:
    """The ceiling as it stands; each change gives another one.

    Attributes:
        full_tokens: The ceiling while memory suffices.
        tokens: The ceiling now.
        raise_at_s: When it doubles, or, where it is full again, when the shortage is over;
            monotonic seconds. 0 while memory suffices.
    """

    full_tokens: int
    tokens: int
    raise_at_s: float = 0.0

    @property
    def is_short(self) -> bool:
        """Memory ran out, and full batches have not yet gone well for a while."""
        return self.raise_at_s > 0

    def lowered(self, too_large_tokens: int, now_s: float) -> TokenBudget:
        """After a run that did not fit: half of it, or what it is already.

        Args:
            too_large_tokens: Padded tokens of the run; a pair alone may have more than the budget.
            now_s: Monotonic seconds.
        """
        tokens = max(1, min(self.tokens, too_large_tokens // 2))
        return replace(self, tokens=tokens, raise_at_s=now_s + RECOVER_S)

    def at(self, now_s: float) -> TokenBudget:
        """After the time that has passed since; one doubling for each `RECOVER_S`."""
        if not self.is_short or now_s < self.raise_at_s:
            return self
        if self.tokens == self.full_tokens:
            return replace(self, raise_at_s=0.0)
        tokens = min(self.full_tokens, 2 * self.tokens)
        return replace(self, tokens=tokens, raise_at_s=self.raise_at_s + RECOVER_S).at(now_s)
