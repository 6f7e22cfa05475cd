from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from service.batching.planner import BatchLimits
from service.domain import Ad
from service.shadow.shadow_model import load_shadow
from service.startup_errors import InvalidSetting
from tests.bundle_variants import damage

LIMITS = BatchLimits(max_pairs=8, max_padded_tokens=4096, max_padding_ratio=0.1)


def test_a_pair_has_the_score_that_the_bundle_gives_it(tiny_bundle_fp32: Path) -> None:
    shadow = load_shadow(tiny_bundle_fp32, "cpu", LIMITS)
    bundle, ad = shadow.bundle, Ad("a", title="shoe", description="red")
    [expected] = bundle.to_scores(bundle.model.logits(bundle.encode("red", [ad])))
    assert shadow.score("red", ad) == expected
    assert shadow.one_pair_s > 0


def test_a_bundle_that_cannot_be_served_is_refused_by_the_settings_name(
    tiny_bundle_fp32: Path, tmp_path: Path
) -> None:
    with pytest.raises(InvalidSetting, match=r"shadow_bundle: no bundle at .*gone"):
        load_shadow(tmp_path / "gone", "cpu", LIMITS)
    bad = Path(shutil.copytree(tiny_bundle_fp32, tmp_path / "bad"))
    damage(bad)
    with pytest.raises(InvalidSetting, match=r"shadow_bundle: .*model\.onnx has sha256"):
        load_shadow(bad, "cpu", LIMITS)


def test_a_score_that_is_no_number_is_a_failure(
    tiny_bundle_fp32: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shadow = load_shadow(tiny_bundle_fp32, "cpu", LIMITS)
    model = type(shadow.bundle.model)
    monkeypatch.setattr(model, "logits", lambda *_: np.array([[np.nan]], np.float32))
    with pytest.raises(ArithmeticError, match="not a number"):
        shadow.score("red", Ad("a", text="shoe"))
