"""Opening a bundle: the folder that holds a model and all facts about it.

Usable with no server: the export measures parity through the same classes that serve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.domain import Ad
from service.pair_seen import PairSeen
from service.scoring.ad_template import AdTemplate
from service.scoring.bundle_files import MODEL_FILE, TOKENIZER_FILE, verified_manifest
from service.scoring.calibration import Scores, to_scores
from service.scoring.encoding import EncodedPair, PairEncoder, TextIds
from service.scoring.head import Margins, margin
from service.scoring.manifest import Manifest
from service.scoring.mapped_graph import mapped_graph
from service.scoring.onnx_model import OnnxModel
from service.scoring.target import require_target
from service.scoring.token_view import see_pair
from service.startup_errors import BundleIncompatible


@dataclass(frozen=True, slots=True)
class Bundle:
    """A model ready to score: its facts, its encoder and its session."""

    manifest: Manifest
    encoder: PairEncoder
    template: AdTemplate
    model: OnnxModel
    path: Path

    def encode(self, query: str, ads: Sequence[Ad]) -> list[EncodedPair]:
        """Render each ad by the model's template and encode it against the query."""
        return self.encoder.encode(query, [self.template.render(ad) for ad in ads])

    @property
    def n_logits(self) -> int:
        """Outputs of the model for each pair."""
        return self.manifest.head.n_logits

    def ad_text(self, ad: Ad) -> str:
        """The ad as the model reads it."""
        return self.template.render(ad)

    def join(self, query_ids: TextIds, ad_ids: TextIds) -> EncodedPair:
        """One pair from the token ids of its two sides."""
        return self.encoder.join(query_ids, ad_ids)

    def to_scores(self, logits: NDArray[np.float32]) -> Scores:
        """Calibrated scores of (n, k) logits."""
        return to_scores(logits, self.manifest.head, self.manifest.score_calibration)

    def to_margins(self, logits: NDArray[np.float32]) -> Margins:
        """Log-odds before calibration of (n, k) logits; with one logit, itself."""
        return margin(logits, self.manifest.head)

    def see(self, query: str, ad_text: str) -> PairSeen:
        """One pair as the model reads it, token by token."""
        fed_segments = "token_type_ids" in self.manifest.inputs.names
        return see_pair(self.encoder, query, ad_text, fed_segments=fed_segments)


def open_bundle(
    path: Path, provider: str = "cpu", like: Bundle | None = None, mapped: Path | None = None
) -> Bundle:
    """Check and open a bundle.

    Args:
        path: The folder.
        provider: Execution provider.
        like: An open bundle. Its encoder is taken where this one's would be the same: opening a
            tokenizer holds the interpreter up, and one and its words take some 20 MB.
        mapped: A folder through which processes on the CPU share the weights; None for a process
            that is alone.

    Raises:
        BundleMissing: No bundle there.
        BundleCorrupt: A file is absent or its hash differs; says which, expected and actual.
        BundleIncompatible: Another schema version, tokenizer or graph do not fit the manifest, or
            the manifest does not fit this machine.
        ProviderUnavailable: The execution provider is not there.
    """
    manifest = verified_manifest(path)
    require_target(manifest, provider)
    inputs = manifest.inputs
    try:
        if like is not None and _has_same_encoder(manifest, like.manifest):
            encoder = like.encoder
        else:
            encoder = PairEncoder.from_file(path / TOKENIZER_FILE, inputs.max_length_tokens)
        template = AdTemplate(inputs.ad_text.fields, inputs.ad_text.separator)
    except ValueError as error:
        raise BundleIncompatible(f"bundle at {path}: {error}") from error
    graph = path / MODEL_FILE
    if mapped is not None and provider == "cpu":
        graph = mapped_graph(graph, manifest.files_sha256[MODEL_FILE], mapped)
    model = OnnxModel(
        graph,
        provider=provider,
        n_logits=manifest.head.n_logits,
        pad_id=inputs.pad_id,
    )
    if set(model.input_names) != set(inputs.names):
        raise BundleIncompatible(
            f"bundle at {path}: the graph takes {list(model.input_names)}, "
            f"the manifest says {list(inputs.names)}"
        )
    return Bundle(manifest, encoder, template, model, path)


def _has_same_encoder(one: Manifest, other: Manifest) -> bool:
    return (
        one.files_sha256[TOKENIZER_FILE] == other.files_sha256[TOKENIZER_FILE]
        and one.inputs.max_length_tokens == other.inputs.max_length_tokens
    )
