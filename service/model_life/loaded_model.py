"""From a folder to a model that can take over: all that is slow, and nothing that serves."""

from __future__ import annotations

import logging
import os
import time
from dataclasses import dataclass
from pathlib import Path

from service.batching.cost_model import CostModel
from service.batching.generation import Generation
from service.batching.planner import BatchLimits
from service.caching.score_cache import Logits, ScoreCache
from service.caching.token_cache import TokenCache
from service.cost_warm_up import learn_costs
from service.scoring.bundle import Bundle, open_bundle
from service.scoring.bundle_files import TOKENIZER_FILE, verified_manifest
from service.scoring.encoding import EncodedPair
from service.scoring.golden_pairs import check_golden, golden_logits
from service.startup_errors import BundleCorrupt, InvalidSetting

logger = logging.getLogger(__name__)

TOKEN_CACHE_SHARE = 0.25  # of the memory for caches; the rest keeps scores


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class LoadedModel:
    """A model that has passed its self-test, with all that is its own.

    Attributes:
        bundle: Its facts, its text side and its session.
        generation: Its side in the batches, with what they cost.
        scores: What was scored by it before.
        tokens: Tokens by its tokenizer.
        golden_logits: What it gives for its golden pairs here; other machines may round otherwise.
    """

    bundle: Bundle
    generation: Generation[EncodedPair]
    scores: ScoreCache
    tokens: TokenCache
    golden_logits: Logits


@dataclass(frozen=True, slots=True)
class ModelSource:
    """Where models come from, and what they must fit.

    Attributes:
        path: Folder of the bundle, or a link to it.
        provider: Execution provider.
        limits: Ceilings of a batch.
        cache_bytes: Memory for scores and tokens.
        mapped: Folder through which several processes share the weights, as `open_bundle` takes it.
    """

    path: Path
    provider: str
    limits: BatchLimits
    cache_bytes: int
    mapped: Path | None = None

    def load(self, before: LoadedModel | None = None) -> LoadedModel | None:
        """Open what the folder holds now: verified, warmed up, tested, its costs learned.

        Args:
            before: The model that serves. What is the same in the new one is shared with it.

        Returns:
            None where the folder holds the version that serves already.

        Raises:
            StartupError: It cannot be served here; the message says why.
        """
        # Once: a link that is set anew meanwhile must not give parts of two bundles.
        path = Path(os.path.realpath(self.path))  # `resolve` raises where links are a loop
        if before is not None:
            version = verified_manifest(path).model.version
            if version == before.bundle.manifest.model.version:
                return None
        bundle = open_bundle(path, self.provider, before.bundle if before else None, self.mapped)
        computed = golden_logits(bundle)
        worst = check_golden(bundle, computed)
        if verified_manifest(path) != bundle.manifest:  # nor may a folder that was renamed
            raise BundleCorrupt(f"bundle at {path} was replaced while it was read; try again")
        logger.info("golden pairs agree with the export", extra={"worst_logit_difference": worst})
        cost_model = CostModel()
        # Beside traffic the wall clock would tell of the others' work. On a CPU a run takes place
        # in the thread that asks for it.
        on_cpu = self.provider == "cpu"
        now_s = time.thread_time if before and on_cpu else time.perf_counter
        learn_costs(cost_model, bundle, self.limits, now_s)
        try:
            caches = self._score_cache(bundle, before), self._token_cache(bundle, before)
        except MemoryError as error:
            raise InvalidSetting(
                f"cache_bytes: {self.cache_bytes:,} bytes cannot be had on this machine"
            ) from error
        return LoadedModel(bundle, Generation(bundle.model, cost_model), *caches, computed)

    def _score_cache(self, bundle: Bundle, before: LoadedModel | None) -> ScoreCache:
        return ScoreCache(
            self.cache_bytes - self._token_bytes,
            bundle.n_logits,
            bundle.manifest.model.version,
            before.scores if before else None,
        )

    def _token_cache(self, bundle: Bundle, before: LoadedModel | None) -> TokenCache:
        return TokenCache(
            self._token_bytes,
            bundle.manifest.inputs.max_length_tokens,
            bundle.manifest.files_sha256[TOKENIZER_FILE],
            before.tokens if before else None,
        )

    @property
    def _token_bytes(self) -> int:
        return int(self.cache_bytes * TOKEN_CACHE_SHARE)
