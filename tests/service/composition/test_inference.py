from __future__ import annotations

import pytest

from service.batching.planner import BatchLimits
from service.composition.inference import batch_limits, inference_threads, thread_start
from service.cpu import give_way, usable_cores
from service.settings import Settings


def test_a_batch_is_as_large_as_suits_the_provider() -> None:
    assert batch_limits(Settings()) == BatchLimits(32, 512, 0.1)
    assert batch_limits(Settings(provider="cuda")) == BatchLimits(64, 32_768, 0.1)


@pytest.mark.parametrize("provider", ["cpu", "cuda"])
def test_a_batch_is_as_large_as_the_operator_says(provider: str) -> None:
    told = {"max_batch_pairs": 3, "max_batch_tokens": 77, "max_padding_ratio": 0.5}
    settings = Settings.model_validate({"provider": provider, **told})
    assert batch_limits(settings) == BatchLimits(3, 77, 0.5)


def test_batches_run_on_every_core_or_two_at_a_time_on_a_gpu_unless_the_operator_says() -> None:
    assert inference_threads(Settings()) == usable_cores()
    assert inference_threads(Settings(provider="cuda")) == 2
    assert inference_threads(Settings(inference_threads=5)) == 5


def test_threads_that_compute_give_way_unless_they_are_told_not_to() -> None:
    assert thread_start(Settings()) is give_way
    assert thread_start(Settings(inference_gives_way=False)) is not give_way
