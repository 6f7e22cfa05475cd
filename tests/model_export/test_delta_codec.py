from __future__ import annotations

import numpy as np
import pytest

from model_export.delta_codec import decode, encode
from model_export.errors import DamagedDelta

DELTA = np.random.default_rng(0).normal(size=(200, 100)).astype(np.float32)


@pytest.mark.parametrize("step", [0.25, 0.5, 1.0])
def test_differences_come_back_within_half_a_step(step: float) -> None:
    restored = decode(encode(DELTA, step), step, DELTA.shape)
    assert np.abs(restored - DELTA).max() <= step / 2 + 1e-6
    assert (restored / step == np.rint(restored / step)).all()


def test_normal_differences_take_little_more_than_their_entropy() -> None:
    codes = np.rint(DELTA / 0.5).astype(int).ravel()
    shares = np.bincount(codes - codes.min()) / codes.size
    entropy_bits = -(shares[shares > 0] * np.log2(shares[shares > 0])).sum()
    packed_bits = 8 * len(encode(DELTA, 0.5)) / DELTA.size
    assert entropy_bits <= packed_bits < 1.03 * entropy_bits


def test_what_is_beyond_the_largest_code_is_cut() -> None:
    far = np.array([[500.0, -500.0, 1.0]], np.float32)
    assert decode(encode(far, 1.0), 1.0, far.shape).tolist() == [[127, -127, 1]]


@pytest.mark.parametrize(
    "packed",
    [
        encode(DELTA, 0.5)[:-9],
        encode(DELTA[:-1], 0.5),
        encode(np.concatenate([DELTA, DELTA]), 0.5),
        np.full(100, 255, np.uint8),
    ],
    ids=["cut off", "too few", "too many", "no codes"],
)
def test_bytes_that_are_not_so_many_codes_are_refused(packed: np.ndarray) -> None:
    with pytest.raises(DamagedDelta):
        decode(packed, 0.5, DELTA.shape)
