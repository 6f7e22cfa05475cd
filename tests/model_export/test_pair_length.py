from __future__ import annotations

import pytest

from model_export.errors import UnsupportedCheckpoint
from model_export.pair_length import DEFAULT_MAX_LENGTH_TOKENS, usual_length


@pytest.mark.parametrize(
    ("longest", "stated", "usual"),
    [(512, None, DEFAULT_MAX_LENGTH_TOKENS), (64, None, 64), (512, 32, 32), (64, 100, 64)],
)
def test_the_shortest_of_what_pays_what_is_read_and_what_was_trained_is_taken(
    longest: int, stated: int | None, usual: int
) -> None:
    assert usual_length(longest, stated) == usual


def test_a_model_without_room_for_a_pair_is_refused_with_both_numbers() -> None:
    with pytest.raises(UnsupportedCheckpoint, match="at most 7 tokens, and a pair needs 8"):
        usual_length(7, None)
