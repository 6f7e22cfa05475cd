from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.domain import Ad
from service.scoring.bundle import open_bundle
from service.scoring.golden_pairs import self_test
from service.scoring.manifest import Manifest
from service.startup_errors import BundleIncompatible
from tests.service.scoring.manifest_edits import edit_manifest


def test_a_sound_bundle_opens_scores_and_passes_its_self_test(bundle: Path) -> None:
    opened = open_bundle(bundle)
    assert self_test(opened) <= opened.manifest.golden.logit_tolerance
    pairs = opened.encode("red shoe", [Ad("1", title="red shoe"), Ad("2", text="bag")])
    logits = opened.model.logits(pairs)
    scores = opened.to_scores(logits)
    assert ((scores > 0) & (scores < 1)).all()
    assert opened.to_margins(logits).tolist() == logits[:, 0].tolist()  # a head with one logit


def test_inputs_that_the_graph_does_not_take_are_refused(bundle: Path) -> None:
    def fewer_inputs(fields: dict[str, Any]) -> None:
        fields["inputs"]["names"] = ["input_ids"]
        unversioned = Manifest.model_validate(fields)
        fields["model"]["version"] = unversioned.content_version()

    edit_manifest(bundle, fewer_inputs)
    with pytest.raises(BundleIncompatible, match="token_type_ids"):
        open_bundle(bundle)
