from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from model_export.checkpoint import Checkpoint, load_checkpoint, with_max_length
from model_export.distillation import teacher_logits
from model_export.distillation.teacher_logits import teacher_margins
from model_export.errors import ExportError
from model_export.reference_logits import pair_encoder, reference_logits
from service.scoring.head import margin
from tests.tiny_models import WORDS, write_bert

TEXTS = [("red shoe", " ".join(WORDS[: n % 11 + 1]) + f" {n}") for n in range(90)]


@pytest.fixture(scope="module")
def teacher(tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    folder = write_bert(tmp_path_factory.mktemp("teacher") / "two", n_labels=2)
    return load_checkpoint(str(folder), "1", None)


@pytest.fixture(autouse=True)
def exact_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(teacher_logits, "has_fast_bf16", lambda: False)


def test_margins_are_the_originals_in_the_order_of_the_pairs(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    encoder = pair_encoder(teacher)
    encoded = [encoder.encode(query, [ad])[0] for query, ad in TEXTS]
    expected = margin(reference_logits(teacher, encoded), teacher.head)
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(teacher_margins(teacher, TEXTS, tmp_path), expected, atol=1e-4)


def test_what_is_known_is_not_computed_again(
    teacher: Checkpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = teacher_margins(teacher, TEXTS, tmp_path)
    monkeypatch.delattr(teacher_logits, "_margins")
    steps: list[int] = []
    again = teacher_margins(teacher, TEXTS[::-1], tmp_path, steps.append)
    assert again.tolist() == first[::-1].tolist()
    assert sum(steps) == len(TEXTS)


def test_a_run_that_was_stopped_goes_on_where_it_was(teacher: Checkpoint, tmp_path: Path) -> None:
    whole = teacher_margins(teacher, TEXTS, tmp_path)
    (file,) = tmp_path.iterdir()
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join(lines[:10]) + b"\n" + lines[10][:20])  # killed in mid-line
    steps: list[int] = []
    assert teacher_margins(teacher, TEXTS, tmp_path, steps.append) == pytest.approx(whole, abs=1e-6)
    assert (steps[0], sum(steps)) == (10, len(TEXTS))
    assert file.read_bytes().split(b"\n")[:10] == lines[:10]
    assert teacher_margins(teacher, TEXTS, tmp_path) == pytest.approx(whole, abs=1e-6)


def test_another_teacher_or_another_length_has_a_file_of_its_own(
    teacher: Checkpoint, tmp_path: Path
) -> None:
    teacher_margins(teacher, TEXTS[:2], tmp_path)
    teacher_margins(with_max_length(teacher, 16), TEXTS[:2], tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_cache_that_is_none_is_refused_by_name(teacher: Checkpoint, tmp_path: Path) -> None:
    teacher_margins(teacher, TEXTS[:2], tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_text('{"pair": "x"}\n', encoding="utf-8")
    with pytest.raises(ExportError, match=f"{file.name} is not a cache of teacher logits"):
        teacher_margins(teacher, TEXTS[:2], tmp_path)


def test_a_repeated_pair_is_computed_once(teacher: Checkpoint, tmp_path: Path) -> None:
    values = teacher_margins(teacher, [TEXTS[0], TEXTS[1], TEXTS[0]], tmp_path)
    assert values[0] == values[2] != values[1]
    (file,) = tmp_path.iterdir()
    assert len(file.read_text(encoding="utf-8").splitlines()) == 2
