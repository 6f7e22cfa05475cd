from __future__ import annotations

import math

import pytest

from model_export import options as options_module
from model_export.errors import ExportError
from model_export.options import ExportOptions
from model_export.parity import TOLERANCES


def test_the_defaults_are_int8_that_is_exact_on_every_cpu() -> None:
    options = ExportOptions()
    assert (options.precision, options.target, options.for_gpu) == ("int8", "avx2", False)
    assert options.tolerances_of("int8") == TOLERANCES["int8"]


def test_precision_and_target_must_fit_together() -> None:
    with pytest.raises(ExportError, match=r"int8 is for CPUs.*fp16"):
        ExportOptions(precision="int8", target="cuda")
    with pytest.raises(ExportError, match=r"fp16 is for GPUs.*int8"):
        ExportOptions(precision="fp16", target="avx2")
    assert ExportOptions(precision="fp16", target="cuda").for_gpu
    assert ExportOptions(precision="fp32", target="cuda").for_gpu


def test_a_tolerance_of_ones_own_is_for_the_precision_that_was_asked_for() -> None:
    options = ExportOptions(tolerances={"mean_score": 0.5})
    assert options.tolerances_of("int8").mean_score == 0.5
    assert options.tolerances_of("int8").worst_score == TOLERANCES["int8"].worst_score
    assert options.tolerances_of("fp32").mean_score == 0.5, "on the way there at least as much"
    strict = ExportOptions(tolerances={"mean_score": 0.0, "rank_agreement": 1.0})
    assert strict.tolerances_of("fp32") == TOLERANCES["fp32"]
    assert strict.tolerances_of("int8").rank_agreement == 1.0


def test_no_agreement_is_above_one() -> None:
    with pytest.raises(ExportError, match="above 1"):
        ExportOptions(tolerances={"rank_agreement": 2.0})


@pytest.mark.parametrize("value", [-0.1, math.inf, math.nan])
def test_a_tolerance_that_is_no_number_from_zero_on_is_refused(value: float) -> None:
    with pytest.raises(ExportError, match="mean_score"):
        ExportOptions(tolerances={"mean_score": value})


def test_an_unknown_tolerance_is_refused() -> None:
    with pytest.raises(ExportError, match="speed"):
        ExportOptions(tolerances={"speed": 1.0})


@pytest.mark.parametrize("target", ["vnni", "arm64"])
def test_eight_bits_are_not_proved_on_a_processor_whose_products_saturate(
    monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    monkeypatch.setattr(options_module, "cpu_flags", lambda: frozenset({"avx2"}))
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    with pytest.raises(ExportError, match=f"--target {target} .* saturate"):
        ExportOptions(target=target).require_machine()  # type: ignore[arg-type]  # of the list above
    ExportOptions(target="avx2").require_machine()
    monkeypatch.setattr(options_module, "cpu_flags", lambda: frozenset({"avx_vnni"}))
    ExportOptions(target=target).require_machine()  # type: ignore[arg-type]  # as above
