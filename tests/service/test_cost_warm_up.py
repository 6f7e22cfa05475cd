from __future__ import annotations

import itertools
from pathlib import Path

from service.batching.cost_model import CostModel
from service.batching.planner import BatchLimits
from service.cost_warm_up import WARM_UP_S, learn_costs
from service.scoring.bundle import open_bundle

LIMITS = BatchLimits(max_pairs=8, max_padded_tokens=4096, max_padding_ratio=0.1)


def test_after_the_warm_up_more_tokens_are_known_to_cost_more(tiny_bundle_int8: Path) -> None:
    cost_model = CostModel()
    learn_costs(cost_model, open_bundle(tiny_bundle_int8), LIMITS)
    cost = cost_model.cost
    assert 0 < cost.batch_s(1, 16.0) < cost.batch_s(8, 64.0) < 1


def test_the_warm_up_ends_when_its_time_is_over(tiny_bundle_int8: Path) -> None:
    clock = itertools.count(step=WARM_UP_S * 0.4)
    cost_model, observed = CostModel(), []
    cost_model.observe = lambda *batch: observed.append(batch)  # type: ignore[method-assign]
    learn_costs(cost_model, open_bundle(tiny_bundle_int8), LIMITS, lambda: next(clock))
    assert len(observed) == 1
