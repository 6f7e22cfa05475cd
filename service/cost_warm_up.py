"""What batches cost on this machine, found out before the first request."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from service.batching.cost_model import CostModel
from service.batching.planner import BatchLimits
from service.scoring.bundle import Bundle

logger = logging.getLogger(__name__)

WARM_UP_S = 0.5
"""Time after which no further batch is started; a model of 512 tokens needs most of it for one."""

ROUNDS = 3


def learn_costs(
    cost_model: CostModel,
    bundle: Bundle,
    limits: BatchLimits,
    now_s: Callable[[], float] = time.perf_counter,
) -> None:
    """Run batches of the least, middling and largest sizes, and let the model learn from them."""
    longest = bundle.manifest.inputs.max_length_tokens
    started_s = now_s()
    for _ in range(ROUNDS):
        for share in (0.25, 0.5, 1.0):
            # One word is at least one token, so this is the share of the longest pair or more.
            [pair] = bundle.encoder.encode("a", ["b " * int(longest * share)])
            full = limits.full_pairs(pair.length_tokens)
            for n_pairs in (1, full):
                if now_s() - started_s > WARM_UP_S:
                    return
                run_s = now_s()
                bundle.model.logits([pair] * n_pairs)
                cost_model.observe(n_pairs, n_pairs * pair.length_tokens, now_s() - run_s)
    cost = cost_model.cost
    full_batch_s = cost.batch_s(limits.full_pairs(longest), float(longest))
    logger.info(
        "batch costs",
        extra={
            "full_batch_ms": round(1000 * full_batch_s, 2),
            "one_pair_ms": round(1000 * cost.batch_s(1, float(longest)), 2),
        },
    )
