from __future__ import annotations

import pytest

from model_export.errors import UnsupportedCheckpoint
from model_export.pair_length import DEFAULT_MAX_LENGTH_TOKENS, length_note, usual_length


@pytest.mark.parametrize(
    ("longest", "stated", "usual"),
    [
        (512, None, DEFAULT_MAX_LENGTH_TOKENS),
        (64, None, 64),
        (512, 32, 32),
        (512, 256, 256),
        (64, 100, 64),
    ],
)
def test_what_a_checkpoint_says_is_taken_up_to_its_positions_and_else_what_pays(
    longest: int, stated: int | None, usual: int
) -> None:
    assert usual_length(longest, stated) == usual


def test_a_model_without_room_for_a_pair_is_refused_with_both_numbers() -> None:
    with pytest.raises(UnsupportedCheckpoint, match="at most 7 tokens, and a pair needs 8"):
        usual_length(7, None)


@pytest.mark.parametrize(
    ("longest", "stated", "said"),
    [
        (512, None, "longer ones than 128 tokens are cut; --max-length takes up to 512"),
        (512, 256, "pairs of up to 256 tokens are read, as it says"),
        (64, None, None),  # all that it can read
        (512, 64, None),
    ],
)
def test_a_length_that_nobody_chose_or_that_costs_is_said(
    longest: int, stated: int | None, said: str | None
) -> None:
    note = length_note(usual_length(longest, stated), longest, stated)
    assert note is None if said is None else said in (note or "")
