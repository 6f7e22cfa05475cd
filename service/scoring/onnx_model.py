"""The model on ONNX Runtime: encoded pairs in, logits out.

The only module that knows onnxruntime; its exceptions become ours here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from service.errors import InferenceFailed, OutOfMemory
from service.scoring.encoding import EncodedPair
from service.scoring.memory_errors import is_out_of_memory
from service.startup_errors import BundleIncompatible, ProviderUnavailable

PROVIDERS = {"cpu": "CPUExecutionProvider", "cuda": "CUDAExecutionProvider"}

# On the CPU the fused operator took five times as long as what it is made of (onnxruntime 1.32).
SLOW_FUSIONS = ["SkipLayerNormFusion"]

IDS, MASK, TYPE_IDS = "input_ids", "attention_mask", "token_type_ids"
KNOWN_INPUTS = frozenset({IDS, MASK, TYPE_IDS})


class OnnxModel:
    """One session, shared by all worker threads: `session.run` is thread-safe.

    On the CPU the session has one intra-op thread. Many one-thread runs beat one many-thread run
    there, and with one thread a pair's logits do not depend on its batch, to the last bit.
    """

    def __init__(
        self, path: Path, *, provider: str = "cpu", n_logits: int, pad_id: int = 0
    ) -> None:
        """Open the graph.

        Args:
            path: `model.onnx` of a bundle.
            provider: Key of `PROVIDERS`.
            n_logits: Outputs per pair that the manifest promises.
            pad_id: Token id that fills the rows of shorter pairs.

        Raises:
            ProviderUnavailable: The provider is not built in, or ONNX Runtime dropped it.
            BundleIncompatible: The graph cannot be opened, or wants inputs that we do not have.
        """
        asked = PROVIDERS[provider]
        if asked not in ort.get_available_providers():
            raise ProviderUnavailable(asked, ort.get_available_providers())
        if provider == "cuda":
            ort.preload_dlls()  # those of pip's nvidia packages, which are on no loader's path
        session = _session(path, provider, _options(provider))
        if asked not in session.get_providers():
            raise ProviderUnavailable(asked, session.get_providers())
        self.input_names = tuple(node.name for node in session.get_inputs())
        unknown = sorted(set(self.input_names) - KNOWN_INPUTS)
        if unknown or IDS not in self.input_names:
            raise BundleIncompatible(
                f"{path.name} needs inputs {list(self.input_names)}; known: {sorted(KNOWN_INPUTS)}"
            )
        self._session = session
        self._n_logits = n_logits
        self._pad_id = pad_id
        self.provider = provider

    def logits(self, pairs: Sequence[EncodedPair]) -> NDArray[np.float32]:
        """Run one batch.

        Args:
            pairs: n >= 1 encoded pairs; padded here to (n, longest).

        Returns:
            (n, k) float32 in the order of `pairs`. Raw logits; see `calibration.to_scores`.

        Raises:
            OutOfMemory: Fewer pairs at a time may succeed.
            InferenceFailed: The runtime failed, or returned another shape than (n, k).
        """
        try:
            (output,) = self._session.run(None, self._feed(pairs))
        except Exception as error:  # onnxruntime's own types derive from Exception directly
            kind = OutOfMemory if is_out_of_memory(error) else InferenceFailed
            raise kind(f"onnxruntime failed on {len(pairs)} pairs: {error}") from error
        if output.shape != (len(pairs), self._n_logits):
            raise InferenceFailed(
                f"the graph returned shape {output.shape}, expected {(len(pairs), self._n_logits)}"
            )
        return np.asarray(output, dtype=np.float32)

    def _feed(self, pairs: Sequence[EncodedPair]) -> dict[str, NDArray[np.int64]]:
        """The inputs that the graph declares, and only these: no family gets foreign zeros."""
        n, longest = len(pairs), max(pair.length_tokens for pair in pairs)
        feed = {name: np.zeros((n, longest), dtype=np.int64) for name in self.input_names}
        if self._pad_id:
            feed[IDS].fill(self._pad_id)
        for row, pair in enumerate(pairs):
            length = pair.length_tokens
            feed[IDS][row, :length] = pair.ids
            if MASK in feed:
                feed[MASK][row, :length] = 1
            if TYPE_IDS in feed:
                feed[TYPE_IDS][row, :length] = pair.type_ids
        return feed


def write_mapped(path: Path, out: Path) -> None:
    """Write a graph for the CPU as ONNX Runtime has it in memory, its weights in a file beside it.

    ONNX Runtime maps that file, the weights as its kernels pack them included: all processes that
    open the graph have one copy of them.

    Args:
        path: The graph.
        out: Where it goes; the weights' file gets the same name and `.weights`.

    Raises:
        BundleIncompatible: ONNX Runtime cannot open the graph, or not write it there.
    """
    options = _options("cpu")
    options.optimized_model_filepath = str(out)
    for name, value in (
        ("session.optimized_model_external_initializers_file_name", f"{out.name}.weights"),
        ("session.optimized_model_external_initializers_min_size_in_bytes", "1024"),
        ("session.save_external_prepacked_constant_initializers", "1"),
    ):
        options.add_session_config_entry(name, value)
    _session(path, "cpu", options)


def _options(provider: str) -> Any:  # noqa: ANN401  # onnxruntime is not typed
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3  # errors; warnings about fusions concern the exporter
    # A memory plan for each shape of a batch pays where shapes repeat. Here it took 4 % more
    # time, and resident memory grew for as long as new shapes came.
    options.enable_mem_pattern = False
    if provider == "cpu":
        # Idle threads of the pool must not burn a core that another run could use.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return options


def _session(path: Path, provider: str, options: Any) -> Any:  # noqa: ANN401  # likewise
    try:
        return ort.InferenceSession(
            str(path),
            options,
            providers=[PROVIDERS[provider]],
            disabled_optimizers=SLOW_FUSIONS if provider == "cpu" else None,
        )
    except Exception as error:  # onnxruntime's own types derive from Exception directly
        raise BundleIncompatible(f"{path.name} cannot be opened: {error}") from error
