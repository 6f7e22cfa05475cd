from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.loadtest.user_counts import Shape, users_at


def course(shape: Shape) -> list[int | None]:
    return [users_at(shape, elapsed_s, 10, base_users=2, users=12) for elapsed_s in range(11)]


def test_a_steady_load_is_the_same_until_it_ends() -> None:
    assert course("steady") == [12] * 10 + [None]
    assert users_at("steady", 1e9, None, 2, 12) == 12


def test_a_ramp_goes_from_the_base_to_the_goal_in_a_straight_line() -> None:
    assert course("ramp") == [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, None]


def test_a_spike_takes_the_middle_fifth() -> None:
    assert course("spike") == [2, 2, 2, 2, 12, 12, 2, 2, 2, 2, None]


@pytest.mark.parametrize("shape", ["ramp", "spike"])
def test_a_shape_that_changes_needs_an_end(shape: Shape) -> None:
    with pytest.raises(ValueError, match=f"a {shape} needs a run time"):
        users_at(shape, 0, None, 1, 2)


@given(
    st.sampled_from(["ramp", "spike"]),
    st.floats(0, 99.9),
    st.integers(1, 50),
    st.integers(1, 50),
)
def test_no_shape_leaves_the_range_that_it_was_given(
    shape: Shape, elapsed_s: float, base: int, goal: int
) -> None:
    users = users_at(shape, elapsed_s, 100, base, goal)
    assert users is not None
    assert min(base, goal) <= users <= max(base, goal)
