"""The golden pairs: does this machine compute the logits that the export saw?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from service.errors import InferenceFailed
from service.scoring.bulk import bulk_logits
from service.scoring.bundle import Bundle
from service.scoring.bundle_files import GOLDEN_FILE, reading
from service.startup_errors import BundleCorrupt, BundleIncompatible, GoldenMismatch

SHOWN_CHARS = 60


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
    with reading(bundle.path):
        rows = list(_golden_rows(bundle.path / GOLDEN_FILE, bundle.manifest.head.n_logits))
    if len(rows) != bundle.manifest.golden.n_pairs:
        raise BundleCorrupt(
            f"bundle at {bundle.path} has {len(rows)} golden pairs, "
            f"the manifest says {bundle.manifest.golden.n_pairs}"
        )
    return rows


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
