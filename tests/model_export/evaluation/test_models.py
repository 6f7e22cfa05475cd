from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model_export.checkpoint import CALIBRATION_FILE
from model_export.errors import UnsupportedCheckpoint
from model_export.evaluation.models import score_with_bundle, score_with_checkpoint
from model_export.pairs import LabelledPair
from service.domain import Ad
from service.scoring.bundle import open_bundle
from service.scoring.calibration import Platt
from tests.tiny_models import write_bert

PAIRS = [
    LabelledPair(f"red shoe {n}", Ad(str(n), title="cheap", description="bag " * (20 * n)), n % 2)
    for n in range(1, 6)
]


def test_a_bundle_is_scored_as_it_serves_and_says_which_it_is(tiny_bundle_int8: Path) -> None:
    bundle = open_bundle(tiny_bundle_int8)
    # Longest first, so that scoring by length must put them back in order.
    pairs = [
        LabelledPair(f"red shoe {n}", Ad("1", text="cheap bag " * (21 - n)), n % 2)
        for n in range(21)
    ]
    one_by_one = [
        bundle.to_scores(bundle.model.logits(bundle.encode(p.query, [p.ad])))[0] for p in pairs
    ]
    assert len(set(one_by_one)) > 10
    steps: list[int] = []
    scored = score_with_bundle(tiny_bundle_int8, pairs, steps.append)
    assert scored.scores.tolist() == one_by_one
    assert len(steps) > 1
    assert sum(steps) == len(pairs)
    assert scored.facts["version"] == bundle.manifest.model.version
    assert scored.name == str(tiny_bundle_int8)


def test_lengths_are_those_before_cutting(tiny_bundle_fp32: Path) -> None:
    lengths = score_with_bundle(tiny_bundle_fp32, PAIRS).lengths
    assert lengths is not None
    assert lengths.query_tokens.tolist() == [3] * 5
    assert lengths.ad_tokens.tolist() == [21, 41, 61, 81, 101]
    # 64 positions, of which three are special tokens and three the query.
    assert lengths.truncated.tolist() == [False, False, True, True, True]


def test_a_checkpoint_scores_like_its_unquantized_bundle(
    tiny_checkpoint: Path, tiny_bundle_fp32: Path
) -> None:
    steps: list[int] = []
    through_torch = score_with_checkpoint(str(tiny_checkpoint), PAIRS, steps.append)
    served = score_with_bundle(tiny_bundle_fp32, PAIRS)
    np.testing.assert_allclose(through_torch.scores, served.scores, atol=1e-5)
    assert sum(steps) == len(PAIRS)
    assert through_torch.are_probabilities


def test_the_calibration_that_a_checkpoint_comes_with_is_used(tmp_path: Path) -> None:
    folder = write_bert(tmp_path / "calibrated")
    plain = score_with_checkpoint(str(folder), PAIRS).scores
    platt = Platt(slope=0.5, intercept=-1.0, fitted_on="dev")
    (folder / CALIBRATION_FILE).write_text(platt.model_dump_json(), encoding="utf-8")
    scored = score_with_checkpoint(str(folder), PAIRS)
    log_odds = np.log(plain / (1 - plain))
    np.testing.assert_allclose(scored.scores, 1 / (1 + np.exp(-(0.5 * log_odds - 1.0))), rtol=1e-6)
    assert scored.facts["score_calibration"] == "platt"


def test_options_of_the_head_reach_the_checkpoint(tmp_path: Path) -> None:
    folder = str(write_bert(tmp_path / "two", n_labels=2))
    with pytest.raises(UnsupportedCheckpoint, match="relevant"):
        score_with_checkpoint(folder, PAIRS)
    one, other = (
        score_with_checkpoint(folder, PAIRS, relevant_label=label).scores for label in ("0", "1")
    )
    np.testing.assert_allclose(one + other, 1)
