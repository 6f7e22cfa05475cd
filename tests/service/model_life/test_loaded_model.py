from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from service.caching.score_cache import Logits
from service.model_life import loaded_model
from service.model_life.loaded_model import LoadedModel, ModelSource
from service.scoring.bundle import Bundle
from service.scoring.golden_pairs import golden_logits
from service.startup_errors import BundleCorrupt, BundleMissing, InvalidSetting
from tests.bundle_variants import damage, link


def loaded(source: ModelSource, before: LoadedModel | None = None) -> LoadedModel:
    model = source.load(before)
    assert model is not None
    return model


def test_a_model_is_loaded_with_its_caches_and_its_costs_known(
    source: ModelSource, one: Path
) -> None:
    model = loaded(source)
    assert model.bundle.path == one.resolve()
    assert model.generation.model is model.bundle.model
    assert 0 < model.generation.cost.batch_s(8, 32.0) < 1
    assert model.scores.store.enabled
    assert model.tokens.store.enabled
    assert model.golden_logits.shape == (model.bundle.manifest.golden.n_pairs, 1)


def test_a_cache_that_the_machine_has_no_room_for_is_a_wrong_setting(source: ModelSource) -> None:
    with pytest.raises(InvalidSetting, match=r"^cache_bytes: 99,[\d,]+ bytes cannot be had"):
        replace(source, cache_bytes=10**17 - 1).load()


def test_the_version_that_serves_already_is_not_loaded_again(source: ModelSource) -> None:
    assert source.load(loaded(source)) is None


def test_even_the_version_that_serves_is_refused_when_its_files_are_damaged(
    source: ModelSource, one: Path, tmp_path: Path
) -> None:
    model = loaded(source)
    copied = Path(shutil.copytree(one, tmp_path / "copy"))
    damage(copied)
    link(copied, source.path)
    with pytest.raises(BundleCorrupt, match=r"model\.onnx has sha256"):
        source.load(model)


def test_what_is_the_same_in_the_next_model_is_shared_with_it(
    source: ModelSource, other: Path
) -> None:
    first = loaded(source)
    link(other, source.path)
    second = loaded(source, first)
    assert second.bundle.path == other.resolve()
    assert second.bundle.encoder is first.bundle.encoder
    assert second.scores.store is first.scores.store
    assert second.tokens.store is first.tokens.store
    assert second.bundle.model is not first.bundle.model
    assert second.generation.cost_model is not first.generation.cost_model
    assert second.scores.keys("q", ["a"]) != first.scores.keys("q", ["a"])


def test_a_folder_that_is_gone_is_no_bundle(source: ModelSource) -> None:
    model = loaded(source)
    source.path.unlink()
    with pytest.raises(BundleMissing):
        source.load(model)


@pytest.mark.parametrize("renamed", [True, False])
def test_parts_of_two_bundles_never_become_a_model(
    source: ModelSource,
    one: Path,
    other: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    renamed: bool,
) -> None:
    folder = Path(shutil.copytree(one, tmp_path / "folder"))
    link(folder, source.path)

    def replaced_meanwhile(bundle: Bundle) -> Logits:
        if renamed:
            folder.rename(tmp_path / "parked")
            shutil.copytree(other, folder)
        else:
            link(other, source.path)
        return golden_logits(bundle)

    monkeypatch.setattr(loaded_model, "golden_logits", replaced_meanwhile)
    if renamed:
        with pytest.raises(BundleCorrupt, match="replaced while it was read"):
            source.load()
    else:
        assert loaded(source).bundle.path == folder
