"""A cross-encoder as one writes it in an afternoon: tokenize pairs, pad to the longest, run.

The peers' servers share it. It needs numpy, onnxruntime and tokenizers, and nothing of adrel.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime as ort
from tokenizers import Encoding, Tokenizer

MAX_LENGTH_TOKENS = 64


class PlainModel:
    """Scores pairs; thread-safe."""

    def __init__(self, model: Path, tokenizer: Path, threads: int, micro_batch: int = 0) -> None:
        """Load both.

        Args:
            model: An ONNX graph with one logit per pair.
            tokenizer: Its `tokenizer.json`.
            threads: Of one run; 0 leaves it to the runtime, which takes a thread per core.
            micro_batch: Most pairs of one run, which are then of like length; 0: any number.
        """
        self._micro_batch = micro_batch
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self._session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_LENGTH_TOKENS)
        self._tokenizer.no_padding()

    def encode(self, query: str, ads: Sequence[str]) -> list[Encoding]:
        """Each ad as the second segment beside the query."""
        return self.encode_pairs([(query, ad) for ad in ads])

    def encode_pairs(self, pairs: Sequence[tuple[str, str]]) -> list[Encoding]:
        """Queries, each with its ad."""
        encodings: list[Encoding] = self._tokenizer.encode_batch(list(pairs))
        return encodings

    def logits(self, pairs: Sequence[Encoding]) -> list[float]:
        """One run; all pairs are padded to the longest."""
        n_tokens = max(len(pair.ids) for pair in pairs)
        arrays = {
            "input_ids": np.zeros((len(pairs), n_tokens), np.int64),
            "token_type_ids": np.zeros((len(pairs), n_tokens), np.int64),
            "attention_mask": np.zeros((len(pairs), n_tokens), np.int64),
        }
        for row, pair in enumerate(pairs):
            arrays["input_ids"][row, : len(pair.ids)] = pair.ids
            arrays["token_type_ids"][row, : len(pair.ids)] = pair.type_ids
            arrays["attention_mask"][row, : len(pair.ids)] = 1
        feeds = {name: array for name, array in arrays.items() if name in self._inputs}
        [logits] = self._session.run(None, feeds)
        return [float(logit) for logit in logits[:, 0]]

    def scores(self, pairs: Sequence[Encoding]) -> list[float]:
        """Probabilities in the order of the pairs; one run, or micro-batches one by one."""
        size = self._micro_batch or len(pairs)
        order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].ids))
        logits = np.empty(len(pairs), np.float64)
        for start in range(0, len(pairs), size):
            indices = order[start : start + size]
            logits[indices] = self.logits([pairs[index] for index in indices])
        return [float(score) for score in 1 / (1 + np.exp(-logits))]

    def score_ads(self, query: str, ads: Sequence[str]) -> list[float]:
        """Encode and score the ads of one query."""
        return self.scores(self.encode(query, ads))


def server_arguments(description: str | None, **options: int | float) -> argparse.Namespace:
    """What every peer's server takes on its command line, and its own numeric options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1, help="of one run; 0: one per core")
    parser.add_argument("--micro-batch", type=int, default=0, help="pairs of a run; 0: all")
    for name, default in options.items():
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=type(default), default=default)
    return parser.parse_args()


def load_model(arguments: argparse.Namespace) -> PlainModel:
    """The model that `server_arguments` name."""
    return PlainModel(
        arguments.model, arguments.tokenizer, arguments.threads, arguments.micro_batch
    )
