"""Opening a bundle: the folder that holds a model and all facts about it.

Usable with no server: the export measures parity through the same classes that serve.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from service.domain import Ad
from service.errors import InferenceFailed
from service.pair_seen import PairSeen
from service.scoring.ad_template import AdTemplate
from service.scoring.bulk import bulk_logits
from service.scoring.calibration import Scores, to_scores
from service.scoring.encoding import EncodedPair, PairEncoder, TextIds
from service.scoring.head import Margins, margin
from service.scoring.manifest import SCHEMA_VERSION, Manifest
from service.scoring.mapped_graph import mapped_graph
from service.scoring.onnx_model import OnnxModel
from service.scoring.target import require_target
from service.scoring.token_view import see_pair
from service.startup_errors import BundleCorrupt, BundleIncompatible, BundleMissing, GoldenMismatch

MANIFEST_FILE = "manifest.json"
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
GOLDEN_FILE = "golden_pairs.jsonl"

SHOWN_CHARS = 60


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


def sha256_of(path: Path) -> str:
    """Hex digest of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_manifest(path: Path) -> Manifest:
    """The manifest of the bundle at `path`.

    Raises:
        BundleMissing: There is no manifest.
        BundleCorrupt: It is not JSON, or not a manifest of the version that it states.
        BundleIncompatible: It has a schema version that this service does not know.
    """
    file = path / MANIFEST_FILE
    with _reading(path):
        if not file.is_file():
            raise BundleMissing(path)
    try:
        fields = json.loads(file.read_text(encoding="utf-8"))
        stated = fields["schema_version"]
    except (ValueError, KeyError, TypeError, OSError, RecursionError) as error:
        raise BundleCorrupt(f"{file} is not a manifest: {error!r}") from error
    if stated != SCHEMA_VERSION:
        raise BundleIncompatible(
            f"{file} has schema version {stated}, this service reads {SCHEMA_VERSION}; "
            "export the model again or deploy the matching service"
        )
    try:
        return Manifest.model_validate(fields)
    except ValidationError as error:
        faults = "; ".join(
            f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        )
        raise BundleCorrupt(f"{file} is not a valid manifest: {faults}") from error


def verified_manifest(path: Path) -> Manifest:
    """The manifest of the bundle at `path`, once every file there is the one that it lists.

    Raises:
        BundleMissing: No bundle there.
        BundleCorrupt: A file is absent or its hash differs; says which, expected and actual.
        BundleIncompatible: It has a schema version that this service does not know.
    """
    manifest = read_manifest(path)
    with _reading(path):
        _check_files(path, manifest)
    return manifest


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


def self_test(bundle: Bundle) -> float:
    """Score the golden pairs and compare with the logits seen at export; also warms the session.

    Returns:
        Worst absolute difference in logit.

    Raises:
        GoldenMismatch: It is over the manifest's tolerance, or not a number.
        BundleCorrupt: The golden file is malformed.
        BundleIncompatible: The graph does not run on its own golden pairs.
    """
    return check_golden(bundle, golden_logits(bundle))


def golden_logits(bundle: Bundle) -> NDArray[np.float32]:
    """What the model gives for its golden pairs on this machine: (n, k).

    Raises:
        BundleCorrupt: The golden file is malformed.
        BundleIncompatible: The graph does not run on its own golden pairs.
    """
    pairs = [bundle.encoder.encode(query, [ad])[0] for query, ad, _ in _golden_pairs(bundle)]
    try:
        return bulk_logits(bundle.model, pairs)
    except InferenceFailed as error:
        raise BundleIncompatible(
            f"bundle at {bundle.path} cannot score its own golden pairs: {error}"
        ) from error


def check_golden(bundle: Bundle, actual: NDArray[np.float32]) -> float:
    """Compare the golden pairs' logits with those seen at export.

    Args:
        bundle: The bundle.
        actual: As `golden_logits` gives them.

    Returns:
        Worst absolute difference in logit.

    Raises:
        GoldenMismatch: It is over the manifest's tolerance, or not a number.
        BundleCorrupt: The golden file is malformed.
    """
    rows = _golden_pairs(bundle)
    expected = np.array([logits for *_, logits in rows])
    off = np.abs(actual - expected).max(axis=1)  # (n,), NaN where a logit is none
    tolerance = bundle.manifest.golden.logit_tolerance
    n_over = int((~(off <= tolerance)).sum())  # NaN is over
    if n_over:
        number = int(np.argmax(np.nan_to_num(off, nan=np.inf)))
        query, ad_text, _ = rows[number]
        pair = f"pair {number + 1}, query {_shortened(query)}, ad {_shortened(ad_text)}"
        raise GoldenMismatch(pair, float(off[number]), tolerance, n_over, len(rows))
    return float(off.max())


def _shortened(text: str) -> str:
    """For a message: in quotes, with what cannot be printed spelled out."""
    return ascii(text if len(text) <= SHOWN_CHARS else text[:SHOWN_CHARS] + "...")


def _golden_pairs(bundle: Bundle) -> list[tuple[str, str, list[float]]]:
    """Query, ad and the logits at export of each."""
    with _reading(bundle.path):
        rows = list(_golden_rows(bundle.path / GOLDEN_FILE, bundle.manifest.head.n_logits))
    if len(rows) != bundle.manifest.golden.n_pairs:
        raise BundleCorrupt(
            f"bundle at {bundle.path} has {len(rows)} golden pairs, "
            f"the manifest says {bundle.manifest.golden.n_pairs}"
        )
    return rows


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """A file that cannot be read is a fault of the bundle, and the message names it."""
    try:
        yield
    except OSError as error:
        raise BundleCorrupt(f"bundle at {path} cannot be read: {error}") from error


def _has_same_encoder(one: Manifest, other: Manifest) -> bool:
    return (
        one.files_sha256[TOKENIZER_FILE] == other.files_sha256[TOKENIZER_FILE]
        and one.inputs.max_length_tokens == other.inputs.max_length_tokens
    )


def _check_files(path: Path, manifest: Manifest) -> None:
    missing = {MODEL_FILE, TOKENIZER_FILE, GOLDEN_FILE} - set(manifest.files_sha256)
    if missing:
        raise BundleCorrupt(f"bundle at {path}: the manifest lists no {', '.join(sorted(missing))}")
    for name, expected in manifest.files_sha256.items():
        file = path / name
        if Path(name).name != name or not file.is_file():
            raise BundleCorrupt(f"bundle at {path}: file {name} is missing")
        actual = sha256_of(file)
        if actual != expected:
            raise BundleCorrupt(
                f"bundle at {path}: {name} has sha256 {actual}, the manifest says {expected}"
            )
    if manifest.model.version != manifest.content_version():
        raise BundleCorrupt(
            f"bundle at {path}: the manifest says version {manifest.model.version}, its content is "
            f"{manifest.content_version()}: it was changed after the export"
        )


def _golden_rows(file: Path, n_logits: int) -> Iterator[tuple[str, str, list[float]]]:
    content = file.read_text(encoding="utf-8", errors="replace")
    for number, line in enumerate(content.split("\n"), start=1):
        if not line:
            continue
        try:
            row = json.loads(line)
            query, ad_text = row["query"], row["ad_text"]
            logits = [float(logit) for logit in row["logits"]]
            if not isinstance(query, str) or not isinstance(ad_text, str):
                raise TypeError("query and ad_text must be strings")
            if len(logits) != n_logits:
                raise ValueError(f"{len(logits)} logits, the head has {n_logits}")
            f"{query}{ad_text}".encode()  # half of a surrogate pair is no text
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError) as error:
            raise BundleCorrupt(f"{file} line {number} is not a golden pair: {error!r}") from error
        yield query, ad_text, logits
