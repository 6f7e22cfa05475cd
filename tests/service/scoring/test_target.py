from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from service.scoring.bundle_files import read_manifest
from service.scoring.manifest import Manifest
from service.scoring.target import cpu_flags, multiplies_eight_bits_exactly, require_target
from service.startup_errors import BundleIncompatible

HASWELL = ("avx", "avx2", "fma")
ICE_LAKE = (*HASWELL, "avx512f", "avx512_vnni")


def made_for(bundle: Path, **precision: Any) -> Manifest:  # noqa: ANN401  # fields of all types
    manifest = read_manifest(bundle)
    return manifest.model_copy(
        update={"precision": manifest.precision.model_copy(update=precision)}
    )


@pytest.mark.parametrize("target", ["vnni", "arm64"])
def test_weights_of_eight_bits_are_refused_where_products_saturate(
    tiny_bundle_int8: Path, target: str
) -> None:
    manifest = made_for(tiny_bundle_int8, target=target)
    with pytest.raises(BundleIncompatible, match=f"for {target}.*no VNNI.*--target avx2"):
        require_target(manifest, "cpu", "x86_64", HASWELL)
    with pytest.raises(BundleIncompatible, match="does not say whether"):
        require_target(manifest, "cpu", "AMD64", ())
    require_target(manifest, "cpu", "x86_64", ICE_LAKE)
    require_target(manifest, "cpu", "aarch64", ())


@pytest.mark.parametrize("target", ["avx2", "avx512"])
def test_weights_of_seven_bits_are_served_anywhere(tiny_bundle_int8: Path, target: str) -> None:
    require_target(made_for(tiny_bundle_int8, target=target), "cpu", "x86_64", HASWELL)


def test_int8_is_refused_on_a_gpu(tiny_bundle_int8: Path, tiny_bundle_fp32: Path) -> None:
    with pytest.raises(BundleIncompatible, match="--precision fp16"):
        require_target(read_manifest(tiny_bundle_int8), "cuda")
    require_target(read_manifest(tiny_bundle_fp32), "cuda")


def test_fp32_needs_no_instructions(tiny_bundle_fp32: Path) -> None:
    require_target(made_for(tiny_bundle_fp32, target="vnni"), "cpu", "x86_64", ())


@pytest.mark.parametrize(
    ("machine", "flags", "exact"),
    [
        ("x86_64", HASWELL, False),
        ("x86_64", ICE_LAKE, True),
        ("AMD64", ("avx_vnni",), True),
        ("arm64", (), True),
        ("x86_64", (), False),
    ],
)
def test_exact_products_are_known_by_machine_and_flags(
    machine: str, flags: tuple[str, ...], exact: bool
) -> None:
    assert multiplies_eight_bits_exactly(machine, flags) == exact


def test_flags_are_read_as_linux_writes_them(tmp_path: Path) -> None:
    file = tmp_path / "cpuinfo"
    file.write_text("processor\t: 0\nflags\t\t: fpu avx2 avx_vnni\n\nflags\t: other\n")
    assert cpu_flags(file) == {"fpu", "avx2", "avx_vnni"}
    file.write_text("processor: 0\nFeatures : fp asimd i8mm\n")
    assert cpu_flags(file) == {"fp", "asimd", "i8mm"}
    file.write_text("nothing of the kind")
    assert cpu_flags(file) == frozenset()
    assert cpu_flags(tmp_path / "absent") == frozenset()
