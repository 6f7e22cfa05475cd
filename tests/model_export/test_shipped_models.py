"""The files that come with adrel: they are there, small, whole, and score as they always did."""

from __future__ import annotations

from pathlib import Path

import pytest

from model_export.__main__ import main
from model_export.base_weights import resolve_base
from model_export.errors import BaseWeightsMissing
from model_export.reference_logits import pair_encoder, reference_logits
from model_export.shipped_models import DEFAULT_MODEL, SHIPPED_MODELS, load_shipped
from model_export.weight_delta import is_delta, read_facts

MAX_BYTES = 2 * 1024 * 1024  # of a model's weights in the repository
MAX_OTHER_BYTES = 64 * 1024
GOLDEN = {
    "l3": [0.8627, -0.7274, -3.7224],
    "l2": [0.8471, -0.6153, -3.7264],
}
"""Logits of a fitting ad, a looser one and a stranger, as measured when the files were made."""


@pytest.mark.parametrize("model", SHIPPED_MODELS)
def test_a_models_files_fit_the_repository(model: str) -> None:
    sizes = sorted(file.stat().st_size for file in SHIPPED_MODELS[model].folder.iterdir())
    assert 0 < sizes[-1] <= MAX_BYTES
    assert sum(sizes[:-1]) <= MAX_OTHER_BYTES


def test_names_and_layers_tell_the_models_apart() -> None:
    assert len({shipped.name for shipped in SHIPPED_MODELS.values()}) == len(SHIPPED_MODELS)
    assert not is_delta(SHIPPED_MODELS[DEFAULT_MODEL].folder)
    for model in ("l3", "l2"):
        assert len(read_facts(SHIPPED_MODELS[model].folder).layers) == int(model[1:])


@pytest.mark.parametrize("model", ["l3", "l2"])
def test_a_student_scores_as_when_it_was_shipped(model: str) -> None:
    try:
        resolve_base(read_facts(SHIPPED_MODELS[model].folder).base)
    except BaseWeightsMissing as error:
        pytest.skip(str(error))
    checkpoint = load_shipped(model)
    assert checkpoint.name == f"adrel-minilm-{model}"
    assert checkpoint.calibration is not None
    assert checkpoint.max_length_tokens == 64
    encoder = pair_encoder(checkpoint)
    ads = ["Nike Marathon Elite Shoes - 20% Off", "Running Gear for Beginners", "Cheap Printer Ink"]
    encoded = encoder.encode("best running shoes for marathons", ads)
    logits = reference_logits(checkpoint, encoded)[:, 0].tolist()
    assert logits == pytest.approx(GOLDEN[model], abs=1e-3)


def test_a_model_of_ones_own_and_a_shipped_one_exclude_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["export", "--model", "l2", "--out", str(tmp_path / "out")]
    assert main([*command, "--checkpoint", "mine"]) == 1
    assert "--model is one that comes with adrel" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
