from __future__ import annotations

import logging
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.batching.split_run import run_split
from service.errors import InferenceFailed, OutOfMemory
from tests.fakes import FakePair


class SmallMemory:
    """Gives each pair its own logit, as long as a run's padded tokens fit."""

    def __init__(self, fits_tokens: int) -> None:
        self.fits_tokens = fits_tokens
        self.runs: list[int] = []

    def logits(self, pairs: Sequence[FakePair]) -> NDArray[np.float32]:
        if any(pair.logit == 13 for pair in pairs):
            raise InferenceFailed("told to fail")
        self.runs.append(len(pairs) * max(pair.length_tokens for pair in pairs))
        if self.runs[-1] > self.fits_tokens:
            raise OutOfMemory("too much")
        return np.array([[pair.logit] for pair in pairs], np.float32)


def pairs(*lengths: int) -> list[FakePair]:
    return [FakePair(length, logit=float(place + 100)) for place, length in enumerate(lengths)]


def test_what_fits_runs_once_and_as_a_whole() -> None:
    model = SmallMemory(80)
    run = run_split(model, pairs(*[10] * 8))
    assert model.runs == [80]
    assert (run.splits, run.too_large_tokens) == (0, None)


def test_what_does_not_fit_runs_in_halves_until_it_does_in_the_same_order() -> None:
    model = SmallMemory(25)
    asked = pairs(*[10] * 8)
    run = run_split(model, asked)
    assert isinstance(run.outcome, np.ndarray)
    assert run.outcome[:, 0].tolist() == [pair.logit for pair in asked]
    assert model.runs == [80, 40, 20, 20, 40, 20, 20]
    assert (run.splits, run.too_large_tokens) == (3, 40)


def test_a_pair_that_does_not_fit_even_alone_costs_the_others_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        run = run_split(SmallMemory(25), pairs(10, 30, 10))
    assert isinstance(run.outcome, np.ndarray)
    assert np.isnan(run.outcome[:, 0]).tolist() == [False, True, False]
    assert run.too_large_tokens == 30
    assert "of 1 pairs" in caplog.text


def test_where_nothing_fits_it_is_the_error_that_comes_back() -> None:
    run = run_split(SmallMemory(5), pairs(10, 10))
    assert isinstance(run.outcome, OutOfMemory)
    assert run_split(SmallMemory(5), pairs(10)).too_large_tokens == 10


def test_another_error_is_no_reason_to_try_again() -> None:
    model = SmallMemory(1000)
    run = run_split(model, [FakePair(10, logit=13.0), FakePair(10)])
    assert isinstance(run.outcome, InferenceFailed)
    assert (model.runs, run.splits, run.too_large_tokens) == ([], 0, None)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(0, 300))
def test_every_pair_that_fits_alone_has_its_own_logit(lengths: list[int], fits: int) -> None:
    asked = pairs(*lengths)
    run = run_split(SmallMemory(fits), asked)
    if isinstance(run.outcome, BaseException):
        assert min(lengths) > fits
        return
    for pair, logit in zip(asked, run.outcome[:, 0].tolist(), strict=True):
        assert logit == pair.logit if pair.length_tokens <= fits else np.isnan(logit)
