from __future__ import annotations

import numpy as np
import pytest

from model_export.delta_tensors import Arrays, finest, restore
from model_export.errors import DamagedDelta, ExportError

ROOMY = 100_000  # bytes; many times what these weights take


def weights(seed: int) -> Arrays:
    """A linear map, its bias, a head of one logit and an embedding."""
    rng = np.random.default_rng(seed)
    shapes = {
        "layer.weight": (32, 32),
        "layer.bias": (32,),
        "classifier.weight": (1, 32),
        "bert.embeddings.words": (8, 32),
    }
    return {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def test_what_was_learnt_comes_back_but_for_the_rounding_and_embeddings_do_not() -> None:
    trained, start = weights(1), weights(2)
    back = restore(finest(trained, start, ROOMY), start)
    assert back.keys() == trained.keys() - {"bert.embeddings.words"}
    for name, value in back.items():
        assert value.dtype == np.float32
        np.testing.assert_allclose(value, trained[name], atol=0.1)
        assert (value != trained[name]).any()


def test_less_room_makes_it_smaller_and_coarser() -> None:
    trained, start = weights(1), weights(2)
    fine = finest(trained, start, ROOMY)
    coarse = finest(trained, start, len(fine) * 9 // 10)
    assert len(coarse) <= len(fine) * 9 // 10

    def off(content: bytes) -> float:
        return float(
            np.abs(restore(content, start)["layer.weight"] - trained["layer.weight"]).max()
        )

    assert off(coarse) > off(fine)


def test_a_delta_that_cannot_be_so_small_is_refused_with_both_sizes() -> None:
    with pytest.raises(ExportError, match=r"takes \d+ bytes at its coarsest.*than 100$"):
        finest(weights(1), weights(2), 100)


@pytest.mark.parametrize("content", [b"", b"no tensors", None])
def test_bytes_of_something_else_are_refused(content: bytes | None) -> None:
    start = weights(2)
    if content is None:
        some = {name: value for name, value in start.items() if name != "layer.bias"}
        content = finest(some, some, ROOMY)
    with pytest.raises(DamagedDelta):
        restore(content, start)
