"""How many ad servers there are at which moment of a run: the shape of its load."""

from __future__ import annotations

from typing import Literal

Shape = Literal["steady", "ramp", "spike"]

# The part of the run that a spike takes; before and after it there is time to see what is usual.
SPIKE_FROM, SPIKE_UNTIL = 0.4, 0.6


def users_at(
    shape: Shape, elapsed_s: float, run_time_s: float | None, base_users: int, users: int
) -> int | None:
    """Users at one moment; None when the run is over.

    Args:
        shape: steady: always `users`. ramp: from `base_users` to `users` in a straight line.
            spike: `base_users`, but `users` in the middle fifth.
        elapsed_s: Since the start of the run.
        run_time_s: Length of the run; None for a steady one without end.
        base_users: Where a ramp starts; what a spike stands out from.
        users: At the end of a ramp, and in the spike.

    Raises:
        ValueError: A ramp or a spike without an end.
    """
    if run_time_s is None:
        if shape != "steady":
            raise ValueError(f"a {shape} needs a run time")
        return users
    if elapsed_s >= run_time_s:
        return None
    progress = elapsed_s / run_time_s
    if shape == "ramp":
        return round(base_users + (users - base_users) * progress)
    if shape == "spike" and not SPIKE_FROM <= progress < SPIKE_UNTIL:
        return base_users
    return users
